package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// damaged is a store that returns some rows changed.
type damaged struct {
	auth.Store
	store.Journal
	token   func(t *store.Token)  // of a token that is read or redeemed
	session func(s *auth.Session) // of a session that was moved on
	tryCode error                 // the result of a code instead of a check
	tryFrom int                   // after so many that are checked
	create  error                 // and of an account
	message store.SealedMessage   // the one that failed
}

func newDamaged(t *testing.T) *damaged {
	st := harness.NewStore(t)
	journal, _ := store.Capability[store.Journal](st)
	return &damaged{Store: st, Journal: journal}
}

func (s *damaged) Unwrap() auth.Store { return s.Store }

func (s *damaged) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	t, err := s.Store.PeekToken(ctx, p, hash, now)
	if err == nil && s.token != nil {
		s.token(&t)
	}
	return t, err
}

func (s *damaged) RedeemToken(ctx context.Context, r store.Redemption) (store.Token, auth.User, error) {
	t, u, err := s.Store.RedeemToken(ctx, r)
	if err == nil && s.token != nil {
		s.token(&t)
	}
	return t, u, err
}

func (s *damaged) AdvanceSession(ctx context.Context, c store.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, c)
	if err == nil && s.session != nil {
		s.session(&sess)
	}
	return sess, u, err
}

func (s *damaged) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, auth.User, error) {
	if s.tryFrom--; s.tryCode != nil && s.tryFrom < 0 {
		return store.Token{}, auth.User{}, s.tryCode
	}
	return s.Store.RedeemCode(ctx, c)
}

func (s *damaged) CreateUser(ctx context.Context, c store.CreateUser) (auth.User, error) {
	if s.create != nil {
		return auth.User{}, s.create
	}
	return s.Store.CreateUser(ctx, c)
}

func (s *damaged) FailedMessage(context.Context, string, time.Time) (store.SealedMessage, error) {
	return s.message, nil
}

func (s *damaged) RetryMessage(context.Context, store.RetryMessage) error { return nil }

// of replaces the data of tokens of one purpose.
func of(p store.Purpose, subject, data string) func(*store.Token) {
	return func(t *store.Token) {
		if t.Purpose == p && strings.HasPrefix(t.Subject, subject) {
			t.Data = []byte(data)
		}
	}
}

// An unreadable or missing value of a row is a server error, and never means that all is well.
func TestRowsThatCannotBeReadPermitNothing(t *testing.T) {
	const ada = "ada@example.com"
	for name, c := range map[string]struct {
		want error
		opts []auth.Option
		try  func(w *harness.World, s *damaged, idp *authtest.Provider) (any, error)
	}{
		"the state of a sign-in": {want: auth.CodeInternal, try: func(w *harness.World, s *damaged, idp *authtest.Provider) (any, error) {
			back := idp.Authorize(w.T, w.NewVisitor(idp).Start("github", ""))
			s.token = of(store.PurposeOAuth, "", "{")
			res, err := w.FinishOAuth(w.T.Context(), auth.OAuthCallback{Provider: "github", State: back.Get("state"), Code: back.Get("code")})
			return res != nil, err
		}},
		"the proof of a code": {want: auth.CodeInternal, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			to := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(ada, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})})
			s.token = of(store.PurposeExchange, "", "{}")
			tokens, err := w.Exchange(w.T.Context(), auth.ExchangeParams{Code: w.CodeOf(to), CodeVerifier: harness.Verifier})
			return tokens != nil, err
		}},
		"the particulars of an invitation": {want: auth.CodeInternal, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			token := w.Invited(ada)
			s.token = of(store.PurposeInvitation, "", `{"email":"`+ada+`"}`)
			tokens, err := w.AcceptInvitation(w.T.Context(), auth.AcceptInvitationParams{Token: token, Password: harness.GoodPassword})
			return tokens != nil, err
		}},
		"which addresses were taken back": {want: auth.CodeInternal, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			id := w.Account(ada, harness.GoodPassword).ID
			w.Clock.Advance(time.Hour)
			thief := w.SignInAgain(ada)
			w.ChangeEmailTo(thief, ada, "thief@example.com")
			owners := w.StopToken(ada, auth.KindEmailChanged)
			w.Do("PATCH", "/me", map[string]any{"email": "x@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
			theirs := w.StopToken("thief@example.com", auth.KindEmailChangeRequested)
			w.Do("POST", "/secure-account", map[string]any{"token": owners}).Want(200)
			s.token = of(store.PurposeStop, "marks ", "{")
			err := w.SecureAccount(w.T.Context(), auth.SecureAccountParams{Token: theirs})
			u, readErr := w.Store.User(w.T.Context(), store.ByID(id))
			return u.Email != ada || readErr != nil, err
		}},
		"the id of a session": {want: auth.CodeInternal, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			token := w.Member(ada).RefreshToken
			s.session = func(s *auth.Session) { s.ID = "no id" }
			tokens, err := w.Refresh(w.T.Context(), auth.RefreshParams{RefreshToken: token})
			return tokens != nil, err
		}},
		"a factor sealed with a secret that is gone": {want: auth.CodeInternal, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			ada := w.Member(ada)
			w.Enrol(ada.AccessToken)
			secret, err := host.Of(beside(w, s)).TOTPSecret(w.T.Context(), ada.User.ID)
			return secret != "", err
		}},
		"a message sealed with a secret that is gone": {want: store.ErrNotFound, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			s.message = store.SealedMessage{ID: "m", Body: []byte("of another secret")}
			kit := host.Of(w)
			c := kit.Change(w.T.Context(), harness.ByOperator())
			return false, kit.RetryMessage(w.T.Context(), &c, &host.Send{}, "m")
		}},
		"settings": {want: auth.CodeInternal, try: func(w *harness.World, _ *damaged, _ *authtest.Provider) (any, error) {
			list, err := host.Of(w).Settings(store.StoredSettings{Document: []byte("{")})
			return len(list) > 0, err
		}},
		"a code that was tried too often": {want: auth.CodeRateLimited, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			code, request := w.AskCode(harness.PhoneNumber)
			s.tryCode = store.ErrTooManyAttempts
			tokens, err := w.VerifyPhoneCode(w.T.Context(), auth.VerifyPhoneCodeParams{Phone: harness.PhoneNumber, Code: code, RequestID: request})
			return tokens != nil, err
		}},
		"an address that is another's by now": {want: auth.CodeUserAlreadyExists, try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
			in := w.PostSignUp(ada)
			code := w.Mail(w.T, ada, auth.KindVerifyEmail).Code
			s.tryCode, s.tryFrom = &store.ConflictError{Field: "email"}, 1
			w.VerifyBy(ada, code, harness.Bearer(in.AccessToken)).Want(409, auth.CodeUserAlreadyExists)
			return false, auth.CodeUserAlreadyExists
		}},
		"claims, once the account is there": {
			want: errNoClaims,
			opts: []auth.Option{auth.WithClaims(func(_ context.Context, u auth.User) (map[string]any, error) {
				if u.Claims != nil {
					return nil, errNoClaims
				}
				return nil, nil
			})},
			try: func(w *harness.World, s *damaged, _ *authtest.Provider) (any, error) {
				s.Store = &claimsStore{s.Store}
				res, err := w.SignUp(w.T.Context(), auth.SignUpParams{Email: ada, Password: harness.GoodPassword})
				return res != nil, err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			idp := authtest.StartProvider(t)
			s := newDamaged(t)
			w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, s, append([]auth.Option{auth.WithProvider(idp.GitHub())}, c.opts...)...)}
			idp.Now = w.Clock.Now
			if made, err := c.try(w, s, idp); !errors.Is(err, c.want) || made == true {
				t.Errorf("%v, there is something: %v", err, made)
			}
		})
	}
}

var errNoClaims = errors.New("no claims")

// An import into a store that does not answer ends, and is no row of refusals.
func TestImportsEndWithTheStore(t *testing.T) {
	s := newDamaged(t)
	s.create = harness.ErrDown
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, harness.PlainStore{Store: s})}
	told := 0
	users := func(yield func(auth.ImportUserParams) bool) {
		for _, email := range []string{"ada@example.com", "bob@example.com"} {
			if !yield(auth.ImportUserParams{Email: email}) {
				return
			}
		}
	}
	sum, err := w.ImportUsers(t.Context(), users, func(auth.ImportResult) { told++ })
	if !errors.Is(err, auth.CodeUnavailable) || sum != (auth.ImportSummary{}) || told != 0 {
		t.Errorf("%+v, %v, %d told of", sum, err, told)
	}
}

// Wait returns an error and no message once its context ends.
func TestWaitingForMessagesEnds(t *testing.T) {
	w := harness.NewWorld(t)
	over, end := context.WithCancel(t.Context())
	end()
	if m, err := w.Inbox.Wait(over, func(auth.Message) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", m, err)
	}
	u, err := w.Store.User(t.Context(), store.ByID(w.Member("ada@example.com").User.ID))
	if err != nil {
		t.Fatal(err)
	}
	test, err := host.Of(w).PermitTest(t.Context(), u, auth.ChannelEmail)
	if err != nil {
		t.Fatal(err)
	}
	defer test.Forget()
	if done, err := test.Wait(over); done || err != nil {
		t.Errorf("done %t, %v", done, err)
	}
}
