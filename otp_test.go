package auth_test

import (
	"context"
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
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

const number = "+4930123456"

// phoneCode asks for a code and waits for its message.
func (w *world) phoneCode(phone string) string {
	w.t.Helper()
	w.do("POST", "/otp/send", map[string]any{"phone": phone}).want(200)
	return w.Mail(w.t, phone, auth.KindPhoneCode).Code
}

func (w *world) otp(phone, code string, h ...header) *answer {
	w.t.Helper()
	return w.do("POST", "/otp/verify", map[string]any{"phone": phone, "otp": code}, h...)
}

// other is a code that is surely wrong.
func other(code string) string {
	if code[0] == '9' {
		return "0" + code[1:]
	}
	return string(code[0]+1) + code[1:]
}

func TestPhoneSignIn(t *testing.T) {
	w := newWorld(t)
	code := w.phoneCode(number)
	m := w.Mail(t, number, auth.KindPhoneCode)
	if !regexp.MustCompile(`^\d{6}$`).MatchString(code) || m.Channel != auth.ChannelSMS || !strings.HasSuffix(m.Text, "\n@auth.test #"+code) || m.HTML != "" {
		t.Errorf("message %+v", m)
	}
	if _, err := w.Store.User(t.Context(), store.ByPhone(number)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the account exists before the code was used: %v", err)
	}
	s := w.otp("+49 (30) 123-456", code).session() // written another way
	w.wantEvents(auth.EventSignedUp, auth.EventSignedIn)
	if !w.alive(s.AccessToken) {
		t.Error("not signed in")
	}
	u, err := w.Store.User(t.Context(), store.ByPhone(number))
	if err != nil || !u.PhoneVerified() || u.ID != s.User.ID {
		t.Errorf("user %+v, %v", u, err)
	}
	w.otp(number, code).want(400, auth.CodeInvalidCode) // once
	w.Clock.Advance(time.Minute)
	again := w.newCode(code)
	if s2 := w.otp(number, again).session(); s2.User.ID != s.User.ID {
		t.Error("another account")
	}
}

// newCode asks again and waits for another message than the one with old.
func (w *world) newCode(old string) string {
	w.t.Helper()
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	w.do("POST", "/otp/send", map[string]any{"phone": number}).want(200)
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindPhoneCode && m.To == number && !seen[m.ID] })
	if err != nil {
		w.t.Fatalf("no code after %s: %v", old, err)
	}
	return m.Code
}

func TestPhoneCodeDies(t *testing.T) {
	w := newWorld(t)
	code := w.phoneCode(number)
	w.Clock.Advance(5 * time.Minute)
	w.otp(number, code).want(400, auth.CodeInvalidCode) // expired
	code = w.newCode(code)
	for range 5 {
		w.otp(number, other(code)).want(400, auth.CodeInvalidCode)
	}
	w.otp(number, code).want(429, auth.CodeRateLimited) // dead, the right one too
	// Sending again gives a new code, and not as many new tries as one likes.
	w.Clock.Advance(time.Minute)
	code = w.newCode(code)
	for range 4 { // the expired one counted, too
		w.otp(number, other(code)).want(400, auth.CodeInvalidCode)
	}
	w.Clock.Advance(time.Minute)
	code = w.newCode(code)
	w.otp(number, code).want(429, auth.CodeRateLimited)
	w.otp("+4930999999", "123456").want(400, auth.CodeInvalidCode) // no such phone
}

// Two hundred parallel guesses over two instances on one store: no more than
// the cap are judged, and the right code among those beyond it does not win.
func TestParallelPhoneGuesses(t *testing.T) {
	store, secret := memstore.New(), []byte(strings.Repeat("s", 32))
	one := &world{Env: authtest.NewOn(t, store, auth.WithSecret(secret)), t: t}
	two := authtest.NewOn(t, store, auth.WithSecret(secret))
	code := one.phoneCode(number)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		count = map[auth.Code]int{}
	)
	for i := range 200 {
		a := []*auth.Auth{one.Auth, two.Auth}[i%2]
		wg.Go(func() {
			_, err := a.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: number, Code: other(code)})
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
	if _, err := two.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: number, Code: code}); !errors.Is(err, auth.CodeRateLimited) {
		t.Errorf("the right code beyond the cap: %v", err)
	}
}

func TestParallelPhoneCode(t *testing.T) {
	w := newWorld(t)
	code := w.phoneCode(number)
	var wg sync.WaitGroup
	wins := make(chan *auth.Tokens, 20)
	for range 20 {
		wg.Go(func() {
			if tokens, err := w.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: number, Code: code}); err == nil {
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
	w := newWorld(t, auth.WithPhone(auth.PhoneOptions{Allow: []string{"+49", "+1"}, Deny: []string{"+1900"}}))
	for _, bad := range []string{"", "123", "030123456", "+0301234567", "+49301234567890123", "0049301234567", "+49 30 x", "+4930123456;+4930123457", "+33123456789", "+19005550100", "+49٣٠١٢٣٤٥٦"} {
		w.do("POST", "/otp/send", map[string]any{"phone": bad}).want(422, auth.CodeValidationFailed)
		w.otp(bad, "123456").want(422, auth.CodeValidationFailed)
	}
	w.do("POST", "/otp/send", map[string]any{"phone": []string{number}}).want(400, auth.CodeBadJSON)
	w.otp(number, "").want(422, auth.CodeValidationFailed)
	w.do("POST", "/otp/send", map[string]any{"phone": number}).want(200)
	w.do("POST", "/otp/send", map[string]any{"phone": "+49 30 123456"}).want(429, auth.CodeRateLimited)
	off := newPlain(t)
	if _, err := off.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: number}); !errors.Is(err, auth.CodeMethodDisabled) {
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
	w := newWorld(t)
	w.do("POST", "/otp/send", map[string]any{"phone": number, "create_user": false}).want(200)
	for _, guess := range []string{"000000", "123456"} {
		w.otp(number, guess).want(400, auth.CodeInvalidCode)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n != 0 {
		t.Errorf("%d messages to a stranger", n)
	}
}

// Toll fraud: a budget bounds what can be spent.
func TestSMSBudget(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 3, Per: time.Hour}}))
	for i := range 3 {
		w.do("POST", "/otp/send", map[string]any{"phone": fmt.Sprintf("+493012345%d", i)}).want(200)
	}
	w.do("POST", "/otp/send", map[string]any{"phone": "+4930123459"}).want(429, auth.CodeRateLimited)
	if !slices.Contains(w.fired(), auth.EventSMSBudgetExceeded) {
		t.Error("nobody was told")
	}
}

func TestSignUpByPhone(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	body := map[string]any{"phone": number, "password": goodPassword}
	w.do("POST", "/signup", body).want(200)
	code := w.Mail(t, number, auth.KindPhoneCode).Code
	w.do("POST", "/login", body).want(401, auth.CodeInvalidCredentials)
	w.do("POST", "/signup", body).want(200) // no oracle
	s := w.otp(number, code).want(200)
	w.do("POST", "/login", body).want(401, auth.CodeInvalidCredentials) // outside of a session nobody knows whose password it was
	if u := s.session().User; u.ID == "" {
		t.Error("no user")
	}
	inside := newWorld(t)
	in := inside.do("POST", "/signup", body).session()
	inside.otp(number, inside.Mail(t, number, auth.KindPhoneCode).Code, bearer(in.AccessToken)).want(200)
	inside.do("POST", "/login", body).want(200) // inside of one, everything stays
	w.do("POST", "/login", map[string]any{"phone": number, "password": "wrong horse battery"}).want(401, auth.CodeInvalidCredentials)
	w.do("POST", "/login", map[string]any{"phone": "+4930999999", "password": goodPassword}).want(401, auth.CodeInvalidCredentials)
	open := newWorld(t)
	open.do("POST", "/signup", body).session()
	open.do("POST", "/signup", body).want(409, auth.CodeUserAlreadyExists)
}

func (w *world) waitOther(code string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Code != "" && m.Code != code })
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Code
}

// Pre-hijack by phone: whoever proves the number gets rid of a stranger's
// password and sessions.
func TestPhoneCodeEndsPreHijack(t *testing.T) {
	w := newWorld(t)
	attacker := w.do("POST", "/signup", map[string]any{"phone": number, "password": goodPassword}).session()
	first := w.Mail(t, number, auth.KindPhoneCode).Code
	owner := w.otp(number, w.newCode(first)).session()
	if owner.User.ID != attacker.User.ID || w.alive(attacker.AccessToken) {
		t.Error("the attacker's session lives on")
	}
	w.do("POST", "/login", map[string]any{"phone": number, "password": goodPassword}).want(401, auth.CodeInvalidCredentials)
}

// The same with a proved address or number of the attacker's own on the account:
// neither is left as a way in.
func TestPreHijackLeavesNoSideDoor(t *testing.T) {
	w := newWorld(t)
	// The victim's number, the attacker's mailbox.
	s := w.do("POST", "/signup", map[string]any{"phone": number, "password": goodPassword}).session()
	first := w.Mail(t, number, auth.KindPhoneCode).Code
	w.do("PATCH", "/me", map[string]any{"email": "attacker@example.com"}, bearer(s.AccessToken)).want(403, auth.CodeEmailNotVerified)
	w.enrol(s.AccessToken)
	owner := w.otp(number, w.newCode(first)).session() // not asked for the attacker's factor
	if owner.User.Email != "" || owner.User.MFAEnabled {
		t.Errorf("the attacker's things stay: %+v", owner.User)
	}
	// The victim's mailbox, the attacker's number.
	const attackers = "+4930999999"
	for name, take := range map[string]func(email string){
		"magic link": func(email string) {
			w.do("GET", "/magic-link/verify?token="+w.magicLink(email, nil), nil).want(200)
		},
		"reset": func(email string) {
			w.do("POST", "/forgot-password", map[string]any{"email": email}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(email, auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
		},
	} {
		w.Clock.Advance(time.Hour)
		email := strings.ReplaceAll(name, " ", "-") + "-victim@example.com"
		s := w.signUp(email)
		w.do("PATCH", "/me", map[string]any{"phone": attackers}, bearer(s.AccessToken)).want(403, auth.CodeEmailNotVerified)
		// One that came another way, by an import for instance, goes all the same.
		phone, at := attackers, w.Clock.Now()
		w.patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
		take(email)
		if u, err := w.Store.User(t.Context(), store.ByPhone(attackers)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: the attacker's number still opens %+v", name, u)
		}
	}
}

func TestChangePhone(t *testing.T) {
	w := newWorld(t)
	s, eve := w.member("ada@example.com"), w.member("eve@example.com")
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
	code := w.Mail(t, number, auth.KindPhoneCode).Code
	w.otp(number, code).want(400, auth.CodeInvalidCode)                          // it signs nobody in
	w.otp(number, code, bearer(eve.AccessToken)).want(400, auth.CodeInvalidCode) // and is nobody else's
	w.otp(number, other(code), bearer(s.AccessToken)).want(400, auth.CodeInvalidCode)
	if got := w.otp(number, code, bearer(s.AccessToken)).session(); got.User.ID != s.User.ID {
		t.Error("another user")
	}
	u, err := w.Store.User(t.Context(), store.ByPhone(number))
	if err != nil || u.ID != s.User.ID || !u.PhoneVerified() {
		t.Errorf("user %+v, %v", u, err)
	}
	// A taken number is answered alike, and gets no message.
	w.Clock.Advance(time.Minute)
	before := len(w.Inbox.Messages())
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(eve.AccessToken)).want(200)
	w.do("PATCH", "/me", map[string]any{"phone": "x"}, bearer(eve.AccessToken)).want(422, auth.CodeValidationFailed)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Inbox.Messages()); n != before {
		t.Errorf("%d messages to a taken number", n-before)
	}
}

// A number that nobody has proved, on an account that is somebody's by its
// address: whoever holds the number gets an account of their own, and takes
// nothing from that one.
func TestUnprovedNumberBesideAnAddress(t *testing.T) {
	w := newWorld(t)
	ada := w.member("ada@example.com")
	phone := number
	w.patch(ada.User.ID, store.UserPatch{Phone: &phone})
	holder := w.otp(number, w.phoneCode(number)).session()
	if holder.User.ID == ada.User.ID {
		t.Error("the number opens an account that is somebody's by its address")
	}
	u, err := w.Store.User(t.Context(), store.ByID(ada.User.ID))
	if err != nil || u.Phone != "" || u.Email != "ada@example.com" || !w.alive(ada.AccessToken) {
		t.Errorf("user %+v, %v", u, err)
	}
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword}).want(200)
}

// Wrong codes count by the number, whatever they are for and whoever tries: five
// accounts that want one number have no more tries than one.
func TestGuessesCountByNumber(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{
		SendGap: auth.Rate{Burst: -1}, SendPerAddress: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1},
	}))
	wrong := 0
	for i := range 5 {
		s := w.LoginAs(t, fmt.Sprintf("user%d@example.com", i))
		w.Inbox.Clear()
		w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
		code := w.Mail(t, number, auth.KindPhoneCode).Code
		for range 5 {
			if w.otp(number, other(code), bearer(s.AccessToken)).status == http.StatusBadRequest {
				wrong++
			}
		}
	}
	if wrong != 10 {
		t.Errorf("%d wrong guesses were judged", wrong)
	}
}
