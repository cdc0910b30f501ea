package auth_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A distributed attack on an account fills the account's share of the queue for hashes.
// The owner's device has its own share.
func TestDevicesWaitApart(t *testing.T) {
	w, _ := harness.NewAttemptWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 8, Argon2id: harness.UsualCost}))
	ada := w.Account("ada@example.com", harness.GoodPassword)
	release := auth.FillQueue(w.Auth, ada.ID, netip.MustParseAddr("192.0.2.7"))
	defer release()
	logIn := func(device string) error {
		ctx, cancel := context.WithTimeout(harness.OnDeviceContext(t.Context(), device), 100*time.Millisecond)
		defer cancel()
		return w.AttemptLogin(ctx, harness.GoodPassword)
	}
	if err := logIn("strange"); !errors.Is(err, auth.CodeOverloaded) {
		t.Errorf("a stranger: %v", err)
	}
	if err := logIn(harness.OwnDevice); errors.Is(err, auth.CodeOverloaded) {
		t.Errorf("the owner's device: %v", err)
	}
}

// If a password cannot be hashed, the operation changes nothing: no account, no session,
// no new password. The caller may repeat it, and the presented credentials remain valid.
func TestNoPasswordIsNoneWithoutItsHash(t *testing.T) {
	type request struct {
		queue  string // with a full share
		client netip.Addr
		do     func(w *harness.World) error
	}
	here := netip.MustParseAddr("192.0.2.1") // of w.Do
	answered := func(a *harness.Answer) error {
		if a.Status >= 400 {
			return harness.DecodeAs[struct{ Code auth.Code }](a).Code
		}
		return nil
	}
	const newID = "0195a0c4-0000-7000-8000-000000000001"
	for name, prepare := range map[string]func(w *harness.World) request{
		"sign-up by address": func(*harness.World) request {
			return request{"eve@example.com", here, func(w *harness.World) error {
				return answered(w.Do("POST", "/signup", map[string]any{"email": "Eve@example.com", "password": harness.GoodPassword}))
			}}
		},
		"sign-up by number": func(*harness.World) request {
			return request{"+4930123456", here, func(w *harness.World) error {
				return answered(w.Do("POST", "/signup", map[string]any{"phone": "+4930123456", "password": harness.GoodPassword}))
			}}
		},
		"reset": func(w *harness.World) request {
			s := w.Member("ada@example.com")
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			token := w.LinkToken("ada@example.com", auth.KindResetPassword)
			return request{s.User.ID, here, func(w *harness.World) error {
				return answered(w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another phrase of words"}))
			}}
		},
		"invitation": func(w *harness.World) request {
			token := w.Invited("eve@example.com")
			return request{"eve@example.com", netip.Addr{}, func(w *harness.World) error {
				_, err := w.AcceptInvitation(w.T.Context(), auth.AcceptInvitationParams{Token: token, Password: harness.GoodPassword})
				return err
			}}
		},
		"an operator's account": func(w *harness.World) request {
			account := host.NewAccount{ImportUser: host.ImportUser{ID: newID, Email: "eve@example.com"}, Password: harness.GoodPassword}
			return request{newID, netip.Addr{}, func(w *harness.World) error {
				kit := host.Of(w)
				nu, err := kit.NewAccount(w.T.Context(), &account)
				if err != nil {
					return err
				}
				if nu.PasswordHash == "" {
					w.T.Error("an account without its password")
				}
				_, err = kit.Store().CreateUser(w.T.Context(), store.CreateUser{Change: kit.Change(w.T.Context(), auth.Authority{System: "test"}), NewUser: nu})
				return err
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithPasswords(auth.PasswordOptions{Workers: 1, Queue: 8, Argon2id: harness.UsualCost}), auth.WithMail(auth.MailOptions{Sync: true}))
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
			w.Fired()
			release := auth.FillQueue(w.Auth, a.queue, a.client)
			err := a.do(w)
			release()
			if !errors.Is(err, auth.CodeOverloaded) {
				t.Errorf("without its hash: %v", err)
			}
			w.WantEvents()
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
