package signin_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func TestPhoneSignIn(t *testing.T) {
	w := harness.NewWorld(t)
	code := w.PhoneCode(harness.PhoneNumber)
	m := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode)
	if !regexp.MustCompile(`^\d{6}$`).MatchString(code) || m.Channel != auth.ChannelSMS || !strings.HasSuffix(m.Text, "\n@auth.test #"+code) || m.HTML != "" {
		t.Errorf("message %+v", m)
	}
	if _, err := w.Store.User(t.Context(), store.ByPhone(harness.PhoneNumber)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the account exists before the code was used: %v", err)
	}
	s := w.PostOTP("+49 (30) 123-456", code).Session() // written another way
	w.WantEvents(auth.EventSignedUp, auth.EventSignedIn)
	if !w.Alive(s.AccessToken) {
		t.Error("not signed in")
	}
	u, err := w.Store.User(t.Context(), store.ByPhone(harness.PhoneNumber))
	if err != nil || !u.PhoneVerified() || u.ID != s.User.ID {
		t.Errorf("user %+v, %v", u, err)
	}
	w.PostOTP(harness.PhoneNumber, code).Want(400, auth.CodeInvalidCode) // once
	w.Clock.Advance(time.Minute)
	again := w.NewCode(code)
	if s2 := w.PostOTP(harness.PhoneNumber, again).Session(); s2.User.ID != s.User.ID {
		t.Error("another account")
	}
}

func TestPhoneCodeDies(t *testing.T) {
	w := harness.NewWorld(t)
	code := w.PhoneCode(harness.PhoneNumber)
	w.Clock.Advance(5 * time.Minute)
	w.PostOTP(harness.PhoneNumber, code).Want(400, auth.CodeInvalidCode) // expired
	code = w.NewCode(code)
	for range 5 {
		w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
	}
	w.PostOTP(harness.PhoneNumber, code).Want(429, auth.CodeRateLimited) // locked, even for the right code
	// Sending again gives a new code, but no unlimited attempts.
	w.Clock.Advance(time.Minute)
	code = w.NewCode(code)
	for range 4 { // the expired one counted, too
		w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
	}
	w.Clock.Advance(time.Minute)
	code = w.NewCode(code)
	w.PostOTP(harness.PhoneNumber, code).Want(429, auth.CodeRateLimited)
	w.PostOTP("+4930999999", "123456").Want(400, auth.CodeInvalidCode) // no such phone
}

// Two hundred parallel attempts over two instances on one store: no more than the limit are
// checked, and the right code beyond it is refused.
func TestParallelPhoneGuesses(t *testing.T) {
	store, secret := memstore.New(), testsecret.Of("s")
	one := &harness.World{Env: authtest.NewOn(t, store, auth.WithSecret(secret)), T: t}
	two := authtest.NewOn(t, store, auth.WithSecret(secret))
	code := one.PhoneCode(harness.PhoneNumber)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		count = map[auth.Code]int{}
	)
	for i := range 200 {
		a := []*auth.Auth{one.Auth, two.Auth}[i%2]
		wg.Go(func() {
			_, err := a.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: harness.PhoneNumber, Code: harness.OtherNumber(code)})
			var e *auth.Error
			if !errors.As(err, &e) {
				t.Errorf("error %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count[e.Code]++
		})
	}
	wg.Wait()
	if count[auth.CodeInvalidCode] != 5 || count[auth.CodeRateLimited] != 195 {
		t.Errorf("answers %v", count)
	}
	if _, err := two.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: harness.PhoneNumber, Code: code}); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("the right code beyond the cap: %v", err)
	}
}

func TestParallelPhoneCode(t *testing.T) {
	w := harness.NewWorld(t)
	code := w.PhoneCode(harness.PhoneNumber)
	var wg sync.WaitGroup
	wins := make(chan *auth.Tokens, 20)
	for range 20 {
		wg.Go(func() {
			if tokens, err := w.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: harness.PhoneNumber, Code: code}); err == nil {
				wins <- tokens
			}
		})
	}
	wg.Wait()
	if len(wins) != 1 {
		t.Errorf("%d won", len(wins))
	}
}

func TestPhoneRefuses(t *testing.T) {
	w := harness.NewWorld(t, auth.WithPhone(auth.PhoneOptions{Allow: []string{"+49", "+1"}, Deny: []string{"+1900"}}))
	for _, bad := range []string{"", "123", "030123456", "+0301234567", "+49301234567890123", "0049301234567", "+49 30 x", "+4930123456;+4930123457", "+33123456789", "+19005550100"} {
		w.Do("POST", "/otp/send", map[string]any{"phone": bad}).Want(422, auth.CodeValidationFailed)
		w.PostOTP(bad, "123456").Want(422, auth.CodeValidationFailed)
	}
	w.Do("POST", "/otp/send", map[string]any{"phone": []string{harness.PhoneNumber}}).Want(400, auth.CodeBadJSON)
	w.PostOTP(harness.PhoneNumber, "").Want(422, auth.CodeValidationFailed)
	w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}).Want(200)
	w.Do("POST", "/otp/send", map[string]any{"phone": "+49 30 123456"}).Want(429, auth.CodeRateLimited)
	off := harness.NewPlain(t)
	if _, err := off.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: harness.PhoneNumber}); !errors.Is(err, auth.CodeMethodDisabled) {
		t.Errorf("without a sender: %v", err)
	}
	if off.PublicSettings(t.Context()).Methods.PhoneOTP || !w.PublicSettings(t.Context()).Methods.PhoneOTP {
		t.Error("settings do not tell")
	}
	for name, o := range map[string]auth.PhoneOptions{"short": {CodeLength: 4}, "long life": {Life: time.Hour}, "bad prefix": {Deny: []string{"49"}}} {
		if _, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithPhone(o)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPhoneStrangers(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber, "create_user": false}).Want(200)
	for _, guess := range []string{"000000", "123456"} {
		w.PostOTP(harness.PhoneNumber, guess).Want(400, auth.CodeInvalidCode)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n != 0 {
		t.Errorf("%d messages to a stranger", n)
	}
}

// Toll fraud: a budget bounds the cost of text messages.
func TestSMSBudget(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 3, Per: time.Hour}}))
	for i := range 3 {
		w.Do("POST", "/otp/send", map[string]any{"phone": fmt.Sprintf("+493012345%d", i)}).Want(200)
	}
	w.Do("POST", "/otp/send", map[string]any{"phone": "+4930123459"}).Want(429, auth.CodeRateLimited)
	if !slices.Contains(w.Fired(), auth.EventSMSBudgetExceeded) {
		t.Error("nobody was told")
	}
}

func TestSignUpByPhone(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	body := map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}
	w.Do("POST", "/signup", body).Want(200)
	code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	w.Do("POST", "/login", body).Want(401, auth.CodeInvalidCredentials)
	w.Do("POST", "/signup", body).Want(200) // no oracle
	s := w.PostOTP(harness.PhoneNumber, code).Want(200)
	w.Do("POST", "/login", body).Want(401, auth.CodeInvalidCredentials) // outside of a session the password's owner is unknown
	if u := s.Session().User; u.ID == "" {
		t.Error("no user")
	}
	inside := harness.NewWorld(t)
	in := inside.Do("POST", "/signup", body).Session()
	inside.PostOTP(harness.PhoneNumber, inside.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, harness.Bearer(in.AccessToken)).Want(200)
	inside.Do("POST", "/login", body).Want(200) // inside a session, everything stays
	w.Do("POST", "/login", map[string]any{"phone": harness.PhoneNumber, "password": "wrong horse battery"}).Want(401, auth.CodeInvalidCredentials)
	w.Do("POST", "/login", map[string]any{"phone": "+4930999999", "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
	open := harness.NewWorld(t)
	open.Do("POST", "/signup", body).Session()
	open.Do("POST", "/signup", body).Want(409, auth.CodeUserAlreadyExists)
}

// Pre-hijack by phone: the verification of the number deletes a stranger's password and sessions.
func TestPhoneCodeEndsPreHijack(t *testing.T) {
	w := harness.NewWorld(t)
	attacker := w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}).Session()
	first := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	owner := w.PostOTP(harness.PhoneNumber, w.NewCode(first)).Session()
	if owner.User.ID != attacker.User.ID || w.Alive(attacker.AccessToken) {
		t.Error("the attacker's session lives on")
	}
	w.Do("POST", "/login", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
}

// The same with a verified email address or phone number of the attacker's own on the
// account: neither stays as a credential.
func TestPreHijackLeavesNoSideDoor(t *testing.T) {
	w := harness.NewWorld(t)
	// The victim's number, the attacker's mailbox.
	s := w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}).Session()
	first := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	w.Do("PATCH", "/me", map[string]any{"email": "attacker@example.com"}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeEmailNotVerified)
	w.Enrol(s.AccessToken)
	owner := w.PostOTP(harness.PhoneNumber, w.NewCode(first)).Session() // without the attacker's factor
	if owner.User.Email != "" || owner.User.MFAEnabled {
		t.Errorf("the attacker's things stay: %+v", owner.User)
	}
	// The victim's mailbox, the attacker's number.
	const attackers = "+4930999999"
	for name, take := range map[string]func(email string){
		"magic link": func(email string) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(email, nil)}).Want(200)
		},
		"reset": func(email string) {
			w.Do("POST", "/forgot-password", map[string]any{"email": email}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(email, auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
		},
	} {
		w.Clock.Advance(time.Hour)
		email := strings.ReplaceAll(name, " ", "-") + "-victim@example.com"
		s := w.PostSignUp(email)
		w.Do("PATCH", "/me", map[string]any{"phone": attackers}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeEmailNotVerified)
		// An unverified number from another source, such as an import, is deleted all the same.
		phone := attackers
		w.Patch(s.User.ID, store.UserPatch{Phone: &phone})
		take(email)
		if u, err := w.Store.User(t.Context(), store.ByPhone(attackers)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: the attacker's number still opens %+v", name, u)
		}
	}
}

func TestChangePhone(t *testing.T) {
	w := harness.NewWorld(t)
	s, eve := w.Member("ada@example.com"), w.Member("eve@example.com")
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
	code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	w.PostOTP(harness.PhoneNumber, code).Want(400, auth.CodeInvalidCode)                                  // it signs no one in
	w.PostOTP(harness.PhoneNumber, code, harness.Bearer(eve.AccessToken)).Want(400, auth.CodeInvalidCode) // and confirms nothing for another user
	w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code), harness.Bearer(s.AccessToken)).Want(400, auth.CodeInvalidCode)
	if got := w.PostOTP(harness.PhoneNumber, code, harness.Bearer(s.AccessToken)).Session(); got.User.ID != s.User.ID {
		t.Error("another user")
	}
	u, err := w.Store.User(t.Context(), store.ByPhone(harness.PhoneNumber))
	if err != nil || u.ID != s.User.ID || !u.PhoneVerified() {
		t.Errorf("user %+v, %v", u, err)
	}
	// A taken number is answered alike, and gets no message.
	w.Clock.Advance(time.Minute)
	before := len(w.Inbox.Messages())
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(eve.AccessToken)).Want(200)
	w.Do("PATCH", "/me", map[string]any{"phone": "x"}, harness.Bearer(eve.AccessToken)).Want(422, auth.CodeValidationFailed)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n != before {
		t.Errorf("%d messages to a taken number", n-before)
	}
}

// An unverified phone number on an account with a verified owner by email address: the
// holder of the number gets an account of their own and takes nothing from the other.
func TestUnprovedNumberBesideAnAddress(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.Member("ada@example.com")
	phone := harness.PhoneNumber
	w.Patch(ada.User.ID, store.UserPatch{Phone: &phone})
	holder := w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)).Session()
	if holder.User.ID == ada.User.ID {
		t.Error("the number opens an account that is somebody's by its address")
	}
	u, err := w.Store.User(t.Context(), store.ByID(ada.User.ID))
	if err != nil || u.Phone != "" || u.Email != "ada@example.com" || !w.Alive(ada.AccessToken) {
		t.Errorf("user %+v, %v", u, err)
	}
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
}

// Wrong codes count by phone number, for every purpose and caller: five accounts that
// request one number have no more attempts than one.
func TestGuessesCountByNumber(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{
		SendGap: auth.Rate{Burst: -1}, SendPerAddress: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1},
	}))
	wrong := 0
	for i := range 5 {
		s := w.LoginAs(t, fmt.Sprintf("user%d@example.com", i))
		w.Inbox.Clear()
		w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
		code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
		for range 5 {
			if w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code), harness.Bearer(s.AccessToken)).Status == http.StatusBadRequest {
				wrong++
			}
		}
	}
	if wrong != 10 {
		t.Errorf("%d wrong guesses were judged", wrong)
	}
}
