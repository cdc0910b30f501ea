package signin_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// A phone number is one account, however it is written: with a trunk prefix, spaces, marks
// of copied text, or the digits of another script, for codes and passwords.
func TestPhoneNumberIsOneAccount(t *testing.T) {
	w := harness.NewWorld(t)
	w.Imported(auth.ImportUserParams{Phone: "+49 151 23456789", PhoneVerified: true, PasswordHash: harness.BcryptHash})
	u, err := w.Store.User(t.Context(), store.ByPhone("+4915123456789"))
	if err != nil {
		t.Fatal(err)
	}
	for i, number := range []string{
		"+49 (0)151 23456789", "+49(0)151/234 567-89", "+49\u00a0151\u00a023456789", "\u202a+49 151 23456789\u202c", "\u200e+4915123456789",
		"＋４９ １５１ ２３４５６７８９", "+٤٩ ١٥١ ٢٣٤٥٦٧٨٩", "+۴۹ (۰)۱۵۱ ۲۳۴۵۶۷۸۹",
	} {
		if s := w.Do("POST", "/login", map[string]any{"phone": number, "password": harness.GoodPassword}, harness.FromAddress(i)).Session(); s.User.ID != u.ID {
			t.Errorf("%+q: another account by password", number)
		}
		w.Clock.Advance(24 * time.Hour)
		w.Inbox.Clear()
		request := w.RequestCode(map[string]any{"phone": number})
		code := w.Mail(t, u.Phone, auth.KindPhoneCode).Code
		if s := w.OTPOf(number, code, request, harness.FromAddress(i)).Session(); s.User.ID != u.ID {
			t.Errorf("%+q: another account by code", number)
		}
	}
}
