package admin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// The text of a key is returned once, to its maker: no log, event or audit row has it, and
// nothing prints it but Reveal.
func TestKeysStayInside(t *testing.T) {
	t.Parallel()
	const option = "sk_test_of_an_option_0123456789"
	log := &lockedBuffer{}
	o := newOffice(t, memstore.New(), auth.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		auth.WithSecretKeys(auth.SecretKey{Key: option, Scopes: []string{"*"}}))
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	id, texts := "", []string{option}
	for _, pattern := range []string{"POST /keys", "POST /keys/$id/rotate", "POST /keys/$id/rotate"} {
		a := o.do(owner, strings.ReplaceAll(pattern, "$id", id), map[bool]string{true: `{"name":"x","scopes":["*"]}`, false: `{"overlap":60}`}[id == ""]).want(200)
		id, texts = a.body["id"].(string), append(texts, a.body["key"].(string))
	}
	for _, text := range texts {
		for _, header := range []string{"Authorization: Bearer " + text, "Apikey: " + text, "Authorization: Bearer " + text + "x", "Authorization: Basic " + text} {
			for _, pattern := range []string{"GET /users", "DELETE /keys/" + id, "GET /users?x=1", "POST /users/" + owner.User.ID + "/unban"} {
				o.do(nil, pattern, "", header)
			}
		}
	}
	o.do(owner, "PATCH /keys/"+id, `{"name":"y"}`).want(200)
	list := o.do(owner, "GET /keys", "").want(200)
	o.do(owner, "DELETE /keys/"+id, "").want(204)
	o.do(bearing(texts[3]), "GET /users", "").want(401)

	next := o.key(admin.System("test").Accepting(), "*")
	secret := next.Secret.Reveal()
	texts = append(texts, secret)
	who := admin.Key(secret)
	var printed strings.Builder
	for _, v := range []any{next, &next, next.Secret, who, &who, struct{ a admin.Actor }{who}, []admin.Actor{who}, auth.SecretKey{Key: secret}, &auth.SecretKey{Key: secret}} {
		fmt.Fprintf(&printed, "%v %+v %#v %s %q %x %d\n", v, v, v, v, v, v, v)
		b, err := json.Marshal(v)
		if _, own := v.(auth.SecretKey); err != nil {
			t.Error(err)
		} else if _, ptr := v.(*auth.SecretKey); !own && !ptr {
			printed.Write(b)
		}
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&printed, nil)).Info("x", "v", v)
	}
	audit, err := json.Marshal(o.audit())
	if err != nil {
		t.Fatal(err)
	}
	for where, said := range map[string]string{"the log": log.String(), "what is printed": printed.String(), "the audit log": string(audit), "the list": fmt.Sprint(list.body)} {
		if said == "" {
			t.Errorf("%s is empty", where)
		}
		for _, text := range texts {
			for _, form := range []string{text, text[len(text)-12:], fmt.Sprintf("%x", text)} {
				if strings.Contains(said, form) {
					t.Errorf("%s has %q", where, form)
				}
			}
		}
	}
}
