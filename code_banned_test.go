package auth_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// A ban is judged before a code is used up, as it is with links: whoever knows the
// code is told of the ban and can use it once that is lifted, and whoever does not
// is answered as everywhere.
func TestBannedCodesAreNotUsedUp(t *testing.T) {
	for name, way := range map[string]struct {
		begin func(w *world) (code, id string)
		give  func(w *world, code, id string) *answer
	}{
		"by text": {
			func(w *world) (string, string) {
				w.otp(number, w.phoneCode(number)).session()
				w.Clock.Advance(2 * time.Minute)
				w.Inbox.Clear()
				return w.phoneCode(number), ""
			},
			func(w *world, code, _ string) *answer { return w.otp(number, code) },
		},
		"by mail": {
			func(w *world) (string, string) {
				w.member(adaMail)
				m := w.askByMail(adaMail, nil)
				return m.code, m.request
			},
			func(w *world, code, id string) *answer { return w.byCode(adaMail, code, id, nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			code, id := way.begin(w)
			key := store.ByEmail(adaMail)
			if name == "by text" {
				key = store.ByPhone(number)
			}
			u, err := w.Store.User(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			until, over := w.Clock.Now().Add(time.Hour), w.Clock.Now()
			w.patch(u.ID, store.UserPatch{BannedUntil: &until})
			w.fired()
			way.give(w, other(code), id).want(400, auth.CodeInvalidCode)
			for range 7 { // more often than there are tries
				way.give(w, code, id).want(403, auth.CodeUserBanned)
			}
			way.give(w, other(code), id).want(400, auth.CodeInvalidCode)
			w.patch(u.ID, store.UserPatch{BannedUntil: &over})
			way.give(w, code, id).session()
			way.give(w, code, id).want(400, auth.CodeInvalidCode)
		})
	}
}
