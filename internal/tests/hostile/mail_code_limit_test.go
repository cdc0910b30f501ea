package hostile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

const victim = "victim@example.com"

// inNetwork returns the header of a client in one of the many /64 of a stranger's /48.
func inNetwork(n int) harness.Header {
	return harness.Header{Name: "RemoteAddr", Value: fmt.Sprintf("[2001:db8:1:%x::1]:1", n)}
}

// wrongMailCodes is a stranger who for a while requests a code to sign in by mail as often as
// possible, and enters wrong ones from one network after another. It returns how many were
// checked.
func wrongMailCodes(w *harness.World, d time.Duration, h ...harness.Header) (checked int) {
	w.T.Helper()
	n := 0
	for range int(d / (5 * time.Minute)) {
		if a := w.Do("POST", "/magic-link/send", map[string]any{"email": victim}, inNetwork(n)); a.Status == 200 {
			id := harness.DecodeAs[map[string]string](a)["request_id"]
			for range 6 {
				n++
				body := map[string]any{"email": victim, "code": "000000", "request_id": id}
				if w.Do("POST", "/magic-link/verify", body, append(h, inNetwork(n))...).Status == 400 {
					checked++
				}
			}
		}
		w.Clock.Advance(5 * time.Minute)
	}
	return checked
}

// perDay is the number of wrong codes that CodesPerRecipientDaily lets through in a day that
// begins with a full bucket.
const perDay = 2 * 50

// A stranger with as many networks and requested codes as they like gets few attempts at one
// email address, and the owner is notified. An address without an account answers the same.
// The owner goes on with a known device, and with links.
func TestWrongCodesAtOneEmailAddressAreLimited(t *testing.T) {
	t.Parallel()
	var checked [2]int
	for i, member := range []bool{true, false} {
		w := harness.NewWorld(t)
		if member {
			w.Member(victim)
			w.Do("POST", "/login", harness.Credentials(victim, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
			w.Clock.Advance(time.Hour)
			w.Inbox.Clear()
		}
		if checked[i] = wrongMailCodes(w, 24*time.Hour); checked[i] < 50 || checked[i] > perDay {
			t.Errorf("%d wrong codes were checked in a day", checked[i])
		}
		if !member {
			continue
		}
		w.Mail(t, victim, auth.KindManyFailedSignIns)
		w.Clock.Advance(12 * time.Minute)
		seen := w.MailsSeen()
		id := harness.DecodeAs[map[string]string](w.Do("POST", "/magic-link/send", map[string]any{"email": victim}).Want(200))["request_id"]
		m := w.NewMail(victim, auth.KindMagicLink, seen)
		body := map[string]any{"email": victim, "code": m.Code, "request_id": id}
		for w.Do("POST", "/magic-link/verify", map[string]any{"email": victim, "code": harness.OtherNumber(m.Code), "request_id": id}).Status == 400 {
			continue // the hours since the stranger's last one gave some back
		}
		w.Do("POST", "/magic-link/verify", body, harness.OnDevice(harness.Mobile)).Want(429, auth.CodeRateLimited)
		seen = w.MailsSeen()
		w.Clock.Advance(12 * time.Minute)
		id = harness.DecodeAs[map[string]string](w.Do("POST", "/magic-link/send", map[string]any{"email": victim}).Want(200))["request_id"]
		m = w.NewMail(victim, auth.KindMagicLink, seen)
		w.Do("POST", "/magic-link/verify", map[string]any{"email": victim, "code": m.Code, "request_id": id}, harness.OnDevice(harness.Laptop)).Want(200)
	}
	if checked[0] != checked[1] {
		t.Errorf("an address with an account allows %d wrong codes, one without %d", checked[0], checked[1])
	}
}

// A stranger who signs up with another person's address, enters wrong codes in the session,
// moves the account to an own address and begins again gets no more attempts than the
// recipient allows.
func TestWrongCodesOfOneAccountAfterAnother(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	accounts, checked := 0, 0
	for i := range 24 * 4 {
		from := harness.FromAddress(i)
		if a := w.Do("POST", "/signup", harness.Credentials(victim, harness.GoodPassword), from); a.Status == 200 {
			accounts++
			s := a.Session()
			for w.VerifyBy(victim, "000000", harness.Bearer(s.AccessToken), from).Status == 400 {
				checked++
			}
			own := fmt.Sprintf("stranger%d@example.net", accounts)
			w.Do("PATCH", "/me", map[string]any{"email": own}, harness.Bearer(s.AccessToken), from).Want(200)
			w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(own, auth.KindChangeEmail)}, harness.Bearer(s.AccessToken), from).Want(200)
		}
		w.Clock.Advance(15 * time.Minute)
	}
	if accounts < 24 || checked < 50 || checked > perDay {
		t.Errorf("%d accounts, %d wrong codes were checked in a day", accounts, checked)
	}
}

// A stranger's own devices, on an account that never verified the address, get no more
// attempts than others.
func TestAnUnverifiedAddressHasNoKnownDevice(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{CodesPerRecipientDaily: auth.Rate{Burst: 1, Per: 24 * time.Hour}}))
	s := w.Do("POST", "/signup", harness.Credentials(victim, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	w.VerifyBy(victim, "000000").Want(400, auth.CodeInvalidCode)
	w.VerifyBy(victim, "000000", harness.Bearer(s.AccessToken), harness.OnDevice(harness.Mobile)).Want(429, auth.CodeRateLimited)
}

// Logins with a wrong password and a code, which anybody can send, use up no attempt of the
// recipient. Those with the right password do.
func TestWrongPasswordsUseUpNoCodes(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}),
		auth.WithRateLimits(auth.RateLimits{CodesPerRecipientDaily: auth.Rate{Burst: 1, Per: 24 * time.Hour}}))
	w.Do("POST", "/signup", harness.Credentials(victim, harness.GoodPassword)).Want(200)
	wrong := harness.OtherNumber(w.Mail(t, victim, auth.KindVerifyEmail).Code)
	login := func(password string) {
		w.T.Helper()
		w.Do("POST", "/login", map[string]any{"email": victim, "password": password, "confirmation_code": wrong}, harness.FromAddress(9)).Want(401, auth.CodeInvalidCredentials)
	}
	for range 3 {
		login(harness.WrongPassword)
	}
	w.VerifyBy(victim, wrong).Want(400, auth.CodeInvalidCode)
	w.VerifyBy(victim, wrong).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(25 * time.Hour)
	login(harness.GoodPassword)
	w.VerifyBy(victim, wrong).Want(429, auth.CodeRateLimited)
}

// Strangers' wrong codes leave the client with the id of the sign-up its attempts, also after
// they have used up those of the recipient. Its own attempts are five.
func TestStrangersLeaveASignUpItsAttempts(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	wrongMailCodes(w, 12*time.Hour)
	id := signUpID(w, 250)
	m := w.Mail(t, victim, auth.KindVerifyEmail)
	for w.VerifyBy(victim, harness.OtherNumber(m.Code), harness.FromAddress(9)).Status == 400 {
		continue
	}
	w.VerifyBy(victim, m.Code, harness.FromAddress(8)).Want(429, auth.CodeRateLimited)
	verify := func(code, id string, from int) *harness.Answer {
		w.T.Helper()
		return w.Do("POST", "/verify-email", map[string]any{"email": victim, "code": code, "request_id": id}, harness.FromAddress(from))
	}
	for i := range 4 {
		verify(harness.OtherNumber(m.Code), id, i).Want(400, auth.CodeInvalidCode)
	}
	if body := string(verify(m.Code, id, 7).Want(200).Body); body != "{}\n" {
		t.Errorf("answer %q", body)
	}

	w = harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	id = signUpID(w, 250)
	m = w.Mail(t, victim, auth.KindVerifyEmail)
	for i := range 5 {
		verify(harness.OtherNumber(m.Code), id, i).Want(400, auth.CodeInvalidCode)
	}
	verify(m.Code, id, 7).Want(429, auth.CodeRateLimited)
}

func signUpID(w *harness.World, from int) string {
	w.T.Helper()
	return harness.DecodeAs[map[string]any](w.Do("POST", "/signup", harness.Credentials(victim, harness.GoodPassword), harness.FromAddress(from)).Want(200))["request_id"].(string)
}

// A stranger who signs up again and again with the address of their own unverified account,
// and uses the attempts of every id, gets no more right ones than the recipient allows: once
// its limit is used up, only the id that created the account confirms it. Both ids answer
// the same, so that they do not reveal which of them did.
func TestIDsOfRepeatedSignUpsShareALimit(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}),
		auth.WithRateLimits(auth.RateLimits{CodesPerRecipientDaily: auth.Rate{Burst: 2, Per: 24 * time.Hour}}))
	first := signUpID(w, 1)
	code := w.Mail(t, victim, auth.KindVerifyEmail).Code
	second := signUpID(w, 2)
	verify := func(code, id string) *harness.Answer {
		w.T.Helper()
		return w.Do("POST", "/verify-email", map[string]any{"email": victim, "code": code, "request_id": id})
	}
	for range 2 {
		verify(harness.OtherNumber(code), second).Want(400, auth.CodeInvalidCode)
	}
	for _, id := range []string{first, second} {
		verify(harness.OtherNumber(code), id).Want(400, auth.CodeInvalidCode)
	}
	verify(code, second).Want(400, auth.CodeInvalidCode)
	verify(code, first).Want(200)
}
