package auth_test

import (
	"context"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Where a password cannot be hashed, nothing is made of it: no account, no session, no
// other password, and whoever asked may do it again. What they had shown for it stays
// good.
func TestNoPasswordIsNoneWithoutItsHash(t *testing.T) {
	type asked struct {
		queue string // whose share is full
		do    func(w *world) error
	}
	answered := func(a *answer) error {
		if a.status >= 400 {
			return decodeAs[struct{ Code auth.Code }](a).Code
		}
		return nil
	}
	const newID = "0195a0c4-0000-7000-8000-000000000001"
	for name, prepare := range map[string]func(w *world) asked{
		"sign-up by address": func(*world) asked {
			return asked{"eve@example.com", func(w *world) error {
				return answered(w.do("POST", "/signup", map[string]any{"email": "Eve@example.com", "password": goodPassword}))
			}}
		},
		"sign-up by number": func(*world) asked {
			return asked{"+4930123456", func(w *world) error {
				return answered(w.do("POST", "/signup", map[string]any{"phone": "+4930123456", "password": goodPassword}))
			}}
		},
		"reset": func(w *world) asked {
			s := w.member("ada@example.com")
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			token := w.linkToken("ada@example.com", auth.KindResetPassword)
			return asked{s.User.ID, func(w *world) error {
				return answered(w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another phrase of words"}))
			}}
		},
		"invitation": func(w *world) asked {
			token := w.invited("eve@example.com")
			return asked{"eve@example.com", func(w *world) error {
				_, err := w.AcceptInvitation(w.t.Context(), auth.AcceptInvitationParams{Token: token, Password: goodPassword})
				return err
			}}
		},
		"an operator's account": func(w *world) asked {
			account := host.NewAccount{ImportUser: host.ImportUser{ID: newID, Email: "eve@example.com"}, Password: goodPassword}
			return asked{newID, func(w *world) error {
				kit := host.Of(w)
				nu, err := kit.NewAccount(w.t.Context(), &account)
				if err != nil {
					return err
				}
				if nu.PasswordHash == "" {
					w.t.Error("an account without its password")
				}
				_, err = kit.Store().CreateUser(w.t.Context(), store.CreateUser{Change: kit.Change(w.t.Context(), auth.Authority{System: "test"}), NewUser: nu})
				return err
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 8, Argon2id: usualCost}), auth.WithMail(auth.MailOptions{Sync: true}))
			a := prepare(w)
			is := func() (list []store.Credentials) {
				for _, key := range []store.UserKey{store.ByEmail("ada@example.com"), store.ByEmail("eve@example.com"), store.ByPhone("+4930123456")} {
					c, err := w.Store.Credentials(context.WithoutCancel(t.Context()), key)
					if err == nil {
						list = append(list, c)
					} else if !errors.Is(err, store.ErrNotFound) {
						t.Fatal(err)
					}
				}
				return list
			}
			was, mails := is(), len(w.Inbox.Messages())
			w.fired()
			release := auth.FillQueue(w.Auth, a.queue)
			err := a.do(w)
			release()
			if !errors.Is(err, auth.CodeOverloaded) {
				t.Errorf("without its hash: %v", err)
			}
			w.wantEvents()
			now := is()
			if len(now) != len(was) || len(was) > 0 && (now[0].PasswordHash != was[0].PasswordHash || now[0].User.Revision != was[0].User.Revision) || len(w.Inbox.Messages()) != mails {
				t.Errorf("something came of it: %+v", now)
			}
			if err := a.do(w); err != nil {
				t.Errorf("once more: %v", err)
			}
			if now = is(); len(now) != 1 || now[0].PasswordHash == "" || len(was) > 0 && now[0].PasswordHash == was[0].PasswordHash {
				t.Errorf("nothing came of it once more: %+v", now)
			}
		})
	}
}
