package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// Settings that cannot be read are told as such, and changed by nobody.
func TestOutagesOfSettings(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, o *office) error{
		"read": func(ctx context.Context, o *office) error {
			_, err := o.adm.Settings(ctx, admin.System("test"))
			return err
		},
		"changed": func(ctx context.Context, o *office) error {
			_, err := o.adm.SetSettings(ctx, admin.System("test"), admin.SetSettingsParams{Set: map[string]any{"magic_link_enabled": true}})
			return err
		},
	} {
		for k, failed := 1, "?"; failed != ""; k++ {
			tap := storetap.New(memstore.New())
			o := newOffice(t, tap)
			failed = ""
			put := false
			tap.Reset(storetap.Hooks{
				Background: true,
				Skip: func(ctx context.Context, method string) bool {
					return ctx.Value(ledgerKey{}) == nil || put || method == "Roles"
				}, // which are remembered
				After: func(_ context.Context, method string, _ int, err error) { put = method == "PutSettings" && err == nil },
				Fault: func(_ context.Context, method string, n int) storetap.Fault {
					if n != k {
						return storetap.NoFault
					}
					failed = method
					return storetap.FailsBefore
				},
			})
			err := do(context.WithValue(t.Context(), ledgerKey{}, true), o)
			if failed == "" && err != nil {
				t.Errorf("%s: %v", name, err)
			} else if failed != "" {
				if !errors.Is(err, auth.CodeUnavailable) {
					t.Errorf("%s, where %s fails: %v", name, failed, err)
				}
			}
		}
	}
}

// A value that is none in JSON is refused by its name.
func TestSettingThatIsNoJSON(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	_, err := o.adm.SetSettings(t.Context(), admin.System("test"), admin.SetSettingsParams{Set: map[string]any{"magic_link_enabled": make(chan int)}})
	wantCode(t, err, auth.CodeValidationFailed)
}

// A test message whose first attempt takes longer than the caller waits is told as being
// under way.
func TestTestMailThatTakesLong(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner := o.owner()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	release := make(chan struct{})
	o.post.refuse("owner@example.com", func(auth.Message) error {
		leave()
		<-release
		return nil
	})
	res, err := o.adm.TryMail(ctx, actor(owner))
	close(release)
	if err != nil || res.OK || !res.Queued || !strings.Contains(res.Detail, "goes on") {
		t.Errorf("%+v %v", res, err)
	}
}

// No invitation has an empty id, and one that leads where it may not any more is not sent
// again.
func TestInvitationsThatCannotBeSentAgain(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	secret := auth.WithSecret([]byte("two instances' secret of 32 byte"))
	system := admin.System("test")
	before := newOffice(t, store, secret, auth.WithRedirectURLs("https://old.example.com/*"))
	i, err := before.adm.Invite(t.Context(), system, admin.InviteParams{Email: "new@example.com", RedirectTo: "https://old.example.com/x"})
	if err != nil {
		t.Fatal(err)
	}
	o := newOffice(t, store, secret)
	_, err = o.adm.InviteAgain(t.Context(), system, i.ID)
	wantCode(t, err, auth.CodeRedirectNotAllowed)
	_, err = o.adm.InviteAgain(t.Context(), system, "")
	wantCode(t, err, auth.CodeNotFound)
	wantCode(t, o.adm.WithdrawInvitation(t.Context(), system, ""), auth.CodeNotFound)
}

// A number among filters finds what has it, and a
// formula within metadata is none in a table, and is not lost.
func TestWhatIsShownIsWhole(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner := o.owner()
	ids := o.crowd("4711x", 1)
	a := o.do(owner, "POST /users/bulk", `{"action":"unban","dry_run":true,"filter":{"q":4711}}`).want(200)
	if !strings.Contains(a.text, ids[0]) || counts(a) != "1 0 0" {
		t.Error(a.text)
	}
	o.patch(ids[0], store.UserPatch{UserMetadata: map[string]any{"x": "a;=1+1"}})
	var out bytes.Buffer
	if err := o.adm.ExportUsers(t.Context(), admin.System("test"), admin.ExportUsersParams{Format: admin.FormatCSV, Fields: []string{"id", "user_metadata"}}, &out); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`%s,"{""x"":""a;\u003d1+1""}"`, ids[0]); !strings.Contains(out.String(), want) {
		t.Errorf("no %s in %s", want, out.String())
	}
}
