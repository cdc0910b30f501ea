package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// tokens is a store that records the token that was put last.
type tokens struct {
	auth.Store
	last store.Token
}

func (s *tokens) Unwrap() auth.Store { return s.Store }

func (s *tokens) PutToken(ctx context.Context, c store.PutToken) error {
	s.last = c.Token
	return s.Store.PutToken(ctx, c)
}

// No code replaces a link that an actor created for another user, because a code is
// checked before its link and the link's maker are known. The codes of messages to the
// owner still work.
func TestMadeLinksHaveNoCodes(t *testing.T) {
	t.Parallel()
	s := &tokens{Store: memstore.New()}
	o := newOffice(t, s)
	helper, ada := o.operator("helper@example.com", admin.PermCredentials, admin.PermMessagesSend), o.LoginAs(t, "ada@example.com", authtest.Unverified())
	for typ, mailed := range map[admin.LinkType]bool{admin.LinkVerify: true, admin.LinkMagicLink: true, admin.LinkReset: false} {
		made := o.do(helper, "POST /links", `{"type":"`+string(typ)+`","user_id":"`+ada.User.ID+`"}`).want(201)
		if len(made.body) != 2 || s.last.Code != nil || !s.last.CodeExpiresAt.IsZero() || s.last.MaxAttempts != 0 || !strings.Contains(string(s.last.Data), helper.User.ID) {
			t.Errorf("%s: %v, %+v", typ, made.body, s.last)
		}
		o.do(helper, "POST /users/"+ada.User.ID+"/send", `{"type":"`+string(typ)+`"}`).want(202)
		if mailed != (s.last.Code != nil) {
			t.Errorf("%s that was mailed: %+v", typ, s.last)
		}
	}
}
