package signin_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// requestID returns the id of a request for a code.
func requestID(a *harness.Answer) string {
	a.T.Helper()
	return harness.DecodeAs[struct {
		RequestID string `json:"request_id"`
	}](a.Want(200)).RequestID
}

func withID(w *harness.World, phone, code, id string, h ...harness.Header) *harness.Answer {
	w.T.Helper()
	return w.Do("POST", "/otp/verify", map[string]any{"phone": phone, "otp": code, "request_id": id}, h...)
}

// wrongCodes tries five wrong codes with each of the codes that a stranger can request at a
// phone number within a day, each from another IP address. It returns the answers.
func wrongCodes(w *harness.World, phone string, h ...harness.Header) (statuses []int) {
	w.T.Helper()
	for i := range 24 * 5 {
		w.Clock.Advance(12 * time.Minute)
		id := requestID(w.Do("POST", "/otp/send", map[string]any{"phone": phone}, harness.FromAddress(i)))
		for n := range 5 {
			statuses = append(statuses, withID(w, phone, fmt.Sprintf("00%04d", 5*i+n), id, append(h, harness.FromAddress(i))...).Status)
		}
	}
	return statuses
}

// A stranger with as many IP addresses and requested codes as they like gets few attempts at
// one phone number. A number without an account answers the same. The owner goes on with a
// device that they have signed in on, by mail, and on any device a day later.
func TestWrongCodesAtOnePhoneNumberAreLimited(t *testing.T) {
	w, _, _ := harness.NewDeviceWorld(t)
	const unknown = "+4930777777"
	answers := wrongCodes(w, harness.PhoneNumber)
	judged := len(answers) - count(answers, 429)
	if judged < 50 || judged > 100 {
		t.Errorf("%d wrong codes were checked in a day", judged)
	}
	w.Clock.Advance(time.Minute)
	w.Inbox.Clear()
	id := requestID(w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}))
	code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	withID(w, harness.PhoneNumber, code, id, harness.OnDevice(harness.Mobile)).Want(429, auth.CodeRateLimited)
	withID(w, harness.PhoneNumber, code, id, harness.OnDevice(harness.Laptop)).Session()
	w.Do("POST", "/forgot-password", map[string]any{"email": harness.AdaMail}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, nil)}).Session()
	w.Clock.Advance(24 * time.Hour)
	w.Inbox.Clear()
	id = requestID(w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}))
	withID(w, harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, id, harness.OnDevice(harness.Mobile)).Session()
	if other := wrongCodes(w, unknown); !slices.Equal(answers, other) {
		t.Errorf("a number without an account answers otherwise:\n%v\n%v", answers, other)
	}
}

func count(list []int, n int) int {
	return len(list) - len(slices.DeleteFunc(slices.Clone(list), func(v int) bool { return v == n }))
}

// A stranger's own devices, on an account that never verified the phone number, get no more
// attempts than others.
func TestAnUnverifiedAccountsDeviceIsNotKnown(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{CodesPerRecipientDaily: auth.Rate{Burst: 1, Per: 24 * time.Hour}}))
	w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}, harness.OnDevice(harness.Mobile)).Session()
	id := requestID(w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}))
	withID(w, harness.PhoneNumber, "000000", id).Want(400, auth.CodeInvalidCode)
	withID(w, harness.PhoneNumber, "000001", id, harness.OnDevice(harness.Mobile)).Want(429, auth.CodeRateLimited)
}

// The id of a sign-up with a taken phone number matches no code, also not the right one.
// It answers as the id of a sign-up with a free number does. An owner who has forgotten the
// account requests a code and is in.
func TestTheIDOfATakenPhoneNumberMatchesNothing(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithRateLimits(auth.RateLimits{CodesPerAddress: auth.Rate{Burst: 1, Per: time.Hour}}))
	const free = "+4930777777"
	signUp := func(phone string) string {
		w.T.Helper()
		return requestID(w.Do("POST", "/signup", map[string]any{"phone": phone, "password": harness.GoodPassword}))
	}
	w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)).Session()
	w.Clock.Advance(2 * time.Hour)
	w.Inbox.Clear()
	own := requestID(w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}))
	code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	var answers [2][]int
	for i, phone := range []string{harness.PhoneNumber, free} {
		id := signUp(phone)
		withID(w, phone, harness.OtherNumber(code), "", harness.FromAddress(i)).Want(400, auth.CodeInvalidCode)
		withID(w, phone, harness.OtherNumber(code), "", harness.FromAddress(i)).Want(429, auth.CodeRateLimited) // without an id no attempt is left
		for n := range 3 {
			answers[i] = append(answers[i], withID(w, phone, harness.OtherNumber(code), id, harness.FromAddress(10+10*i+n)).Status)
		}
		answers[i] = append(answers[i], withID(w, phone, "x", id+"x", harness.FromAddress(10+10*i)).Status)
	}
	if want := []int{400, 400, 400, 429}; !slices.Equal(answers[0], want) || !slices.Equal(answers[1], want) {
		t.Errorf("taken and free numbers answer %v", answers)
	}
	withID(w, harness.PhoneNumber, code, signUp(harness.PhoneNumber), harness.FromAddress(50)).Want(400, auth.CodeInvalidCode)
	withID(w, harness.PhoneNumber, code, own, harness.FromAddress(51)).Session()
	signUp(harness.PhoneNumber)
	w.Clock.Advance(time.Minute)
	w.Inbox.Clear()
	own = requestID(w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}))
	withID(w, harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, own, harness.FromAddress(52)).Session()
}

// A part of the budget of text messages is kept for verified numbers. When the other part is
// used up, all numbers get the same answers, and only verified ones a text.
func TestTextsForVerifiedNumbersAreKept(t *testing.T) {
	for _, confirm := range []auth.Switch{auth.Off, auth.On} {
		w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 8, Per: 24 * time.Hour}}),
			auth.WithSettings(auth.Settings{RequireConfirmation: confirm}))
		member := w.LoginAs(t, harness.AdaMail)
		phone, at := harness.PhoneNumber, w.Clock.Now()
		u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail))
		if err != nil {
			t.Fatal(err)
		}
		w.Patch(u.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
		ask := func(phone string, i int) *harness.Answer {
			return w.Do("POST", "/otp/send", map[string]any{"phone": phone}, harness.FromAddress(i))
		}
		stranger := func(i int) string { return fmt.Sprintf("+493012345%02d", i) }
		for i := range 6 { // three quarters
			ask(stranger(i), i).Want(200)
			w.Mail(t, stranger(i), auth.KindPhoneCode)
		}
		w.Fired()
		if id := requestID(ask(stranger(20), 20)); id == "" {
			t.Error("another answer without a text")
		}
		w.WantEvents(auth.EventSMSBudgetExceeded)
		w.Do("POST", "/signup", map[string]any{"phone": stranger(21), "password": harness.GoodPassword}, harness.FromAddress(21)).Want(200)
		w.Do("PATCH", "/me", map[string]any{"phone": stranger(22)}, harness.FromAddress(22), harness.Bearer(member.AccessToken)).Want(200)
		w.Fired()
		ask(harness.PhoneNumber, 23).Want(200)
		w.WantEvents(auth.EventSMSBudgetExceeded)
		w.PostOTP(harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code).Session()
		w.Clock.Advance(time.Minute)
		ask(harness.PhoneNumber, 24).Want(200) // the eighth text
		w.Clock.Advance(time.Minute)
		for i, phone := range []string{harness.PhoneNumber, stranger(25)} {
			ask(phone, 25+i).Want(429, auth.CodeRateLimited)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		texts := map[string]int{}
		for _, m := range w.Inbox.Messages() {
			if m.Channel == auth.ChannelSMS {
				texts[m.To]++
			}
		}
		if len(texts) != 7 || texts[harness.PhoneNumber] != 2 {
			t.Errorf("confirmation %v: texts %v", confirm, texts)
		}
	}
}
