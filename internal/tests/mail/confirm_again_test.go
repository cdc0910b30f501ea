package mail_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// browser keeps cookies.
type browser struct {
	*harness.World
	cookies map[string]string
}

func newBrowser(w *harness.World) *browser { return &browser{w, map[string]string{}} }

func (b *browser) header() harness.Header {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(b.cookies)) {
		pairs = append(pairs, name+"="+b.cookies[name])
	}
	return harness.Cookies(pairs...)
}

func (b *browser) keep(a *harness.Answer) *harness.Answer {
	for _, c := range cookiesOf(a) {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return a
}

func cookiesOf(a *harness.Answer) []*http.Cookie {
	return (&http.Response{Header: a.Header}).Cookies()
}

func (b *browser) post(path string, body any) *harness.Answer {
	b.T.Helper()
	h := []harness.Header{harness.SameOrigin, harness.Transport}
	if _, form := body.(string); form {
		h = []harness.Header{harness.SameOrigin, harness.Form, harness.Browser}
	}
	if len(b.cookies) > 0 {
		h = append(h, b.header())
	}
	return b.keep(b.Do("POST", path, body, h...))
}

func (b *browser) page(token string) string {
	b.T.Helper()
	return string(b.Do("GET", "/verify-email?token="+token, nil, harness.Browser, b.header()).Want(200).Body)
}

func (b *browser) signUp(email string) (request string) {
	b.T.Helper()
	return harness.DecodeAs[map[string]any](b.post("/signup", harness.Credentials(email, harness.GoodPassword)).Want(200))["request_id"].(string)
}

func confirmingWorld(t *testing.T, opts ...auth.Option) *harness.World {
	t.Helper()
	return harness.NewWorld(t, append(opts, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithCookies(auth.CookieOptions{}))...)
}

// A form that is submitted twice signs up once. The browser confirms it by the link and by the
// code, and keeps the password, also if the two requests run in parallel and the answer of the
// first arrives last.
func TestSignUpFormSubmittedTwice(t *testing.T) {
	for name, parallel := range map[string]bool{"again": false, "in parallel": true} {
		for how, confirm := range map[string]func(b *browser, m auth.Message, ids []string){
			"link": func(b *browser, m auth.Message, _ []string) {
				token := harness.TokenIn(b.T, m.Link)
				if page := b.page(token); !strings.Contains(page, "Yes, confirm") {
					b.T.Errorf("page %s", page)
				}
				b.post("/verify-email", "token="+token).Want(200)
			},
			"code": func(b *browser, m auth.Message, _ []string) {
				b.post("/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code}).Want(200)
			},
			"code with the last id": func(b *browser, m auth.Message, ids []string) {
				b.post("/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code, "request_id": ids[1]}).Want(200)
			},
			"code with both ids": func(b *browser, m auth.Message, ids []string) {
				b.Do("POST", "/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code, "request_id": strings.Join(ids, ",")}).Want(200)
			},
		} {
			t.Run(how+" "+name, func(t *testing.T) {
				b := newBrowser(confirmingWorld(t))
				var ids []string
				if parallel {
					first, second := newBrowser(b.World), newBrowser(b.World)
					ids = append(ids, first.signUp(harness.AdaMail), second.signUp(harness.AdaMail))
					maps.Copy(b.cookies, first.cookies)
					maps.Copy(b.cookies, second.cookies)
				} else {
					ids = append(ids, b.signUp(harness.AdaMail), b.signUp(harness.AdaMail))
				}
				confirm(b, b.Mail(t, harness.AdaMail, auth.KindVerifyEmail), ids)
				b.post("/login", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
			})
		}
	}
}

// A sign-up with a taken address sets a cookie of the same look as any sign-up, and it
// confirms nothing, in a browser with other sign-ups too.
func TestSignUpCookieIsNoOracle(t *testing.T) {
	w := confirmingWorld(t)
	owner, stranger := newBrowser(w), newBrowser(w)
	owner.signUp(harness.AdaMail)
	stranger.signUp("eve@example.com")
	look := func(a *harness.Answer) string {
		var looks []string
		for _, c := range cookiesOf(a) {
			looks = append(looks, fmt.Sprintf("%.25s %d %d %d", c.Name, len(c.Name), len(c.Value), c.MaxAge))
		}
		return strings.Join(looks, ", ")
	}
	taken := stranger.post("/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
	free := newBrowser(w).post("/signup", harness.Credentials("free@example.com", harness.GoodPassword)).Want(200)
	if look(taken) == "" || look(taken) != look(free) {
		t.Errorf("cookies %q and %q", look(taken), look(free))
	}
	token := w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)
	stranger.post("/verify-email", map[string]any{"token": token}).Want(401, auth.CodeMissingToken)
	owner.post("/verify-email", map[string]any{"token": token}).Want(200)
}

// A browser keeps the ids of its last four sign-ups, and any of them confirms.
func TestSignUpsOfABrowser(t *testing.T) {
	b := newBrowser(confirmingWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true})))
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		b.signUp(name + "@example.com")
		if n := len(b.cookies); n > 4 {
			t.Errorf("%d cookies", n)
		}
	}
	b.post("/verify-email", map[string]any{"token": b.LinkToken("f@example.com", auth.KindVerifyEmail)}).Want(200)
}

// A session of another account does not keep a person from confirming a sign-up, with the
// same evidence as without that session. It is no evidence itself.
func TestSignUpIsConfirmedInTheSessionOfAnotherAccount(t *testing.T) {
	const other = "eve@example.com"
	for name, c := range map[string]struct {
		use  func(here, elsewhere *browser, m auth.Message, request string) *harness.Answer
		want bool
	}{
		"a press": {func(b, _ *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", "token="+harness.TokenIn(b.T, m.Link)).Want(200)
		}, true},
		"the password, elsewhere": {func(_, b *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", "token="+harness.TokenIn(b.T, m.Link)+"&password=correct+horse+battery").Want(200)
		}, true},
		"the code": {func(b, _ *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code}).Want(200)
		}, true},
		"the code and the id": {func(_, b *browser, m auth.Message, request string) *harness.Answer {
			return b.post("/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code, "request_id": request}).Want(200)
		}, true},
		"a press, elsewhere": {func(_, b *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", "token="+harness.TokenIn(b.T, m.Link)).Want(200)
		}, false},
		"the link, elsewhere": {func(_, b *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", map[string]any{"token": harness.TokenIn(b.T, m.Link)}).Want(401, auth.CodeMissingToken)
		}, false},
		"the code and another id, elsewhere": {func(_, b *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code, "request_id": "x"}).Want(400, auth.CodeInvalidCode)
		}, false},
		"the code, elsewhere": {func(_, b *browser, m auth.Message, _ string) *harness.Answer {
			return b.post("/verify-email", map[string]any{"email": harness.AdaMail, "code": m.Code}).Want(400, auth.CodeInvalidCode)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			here := newBrowser(confirmingWorld(t))
			here.signUp(other)
			here.post("/verify-email", map[string]any{"token": here.LinkToken(other, auth.KindVerifyEmail)}).Want(200)
			here.post("/login", harness.Credentials(other, harness.GoodPassword)).Want(200)
			elsewhere := newBrowser(here.World)
			elsewhere.post("/login", harness.Credentials(other, harness.GoodPassword)).Want(200)
			request := here.signUp(harness.AdaMail)
			c.use(here, elsewhere, here.Mail(t, harness.AdaMail, auth.KindVerifyEmail), request)
			of, err := here.Store.Credentials(t.Context(), store.ByEmail(harness.AdaMail))
			if err != nil || of.User.EmailVerified() != c.want || of.PasswordHash == "" {
				t.Errorf("%+v, %v", of.User, err)
			}
		})
	}
}

// A browser whose access token has expired is still signed in by its refresh token, which a
// link does not rotate.
func TestLinkInTheSameBrowserLater(t *testing.T) {
	start := func(t *testing.T) (b *browser, token string) {
		t.Helper()
		b = newBrowser(harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{})))
		b.post("/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
		b.post("/verify-email", map[string]any{"token": b.LinkToken(harness.AdaMail, auth.KindVerifyEmail)}).Want(200)
		b.Do("PATCH", "/me", map[string]any{"email": fresh}, b.header(), harness.SameOrigin).Want(200)
		return b, b.LinkToken(fresh, auth.KindChangeEmail)
	}
	later := func(b *browser) {
		b.Clock.Advance(20 * time.Minute)
		delete(b.cookies, harness.AccessCookie) // as browsers do
	}
	t.Run("a new address", func(t *testing.T) {
		b, token := start(t)
		later(b)
		before := b.cookies[harness.RefreshCookie]
		page := b.page(token)
		if !strings.Contains(page, "Yes, change it") || !strings.Contains(page, "a•••a@e•••e.com") || !strings.Contains(page, fresh) {
			t.Errorf("page %s", page)
		}
		b.post("/verify-email", "token="+token).Want(200)
		if _, err := b.Store.User(t.Context(), store.ByEmail(fresh)); err != nil || b.cookies[harness.RefreshCookie] != before {
			t.Errorf("%v, cookies %v", err, b.cookies)
		}
		b.post("/refresh", nil).Want(200)
	})
	t.Run("a sign-up", func(t *testing.T) {
		b := newBrowser(harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{})))
		b.post("/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
		later(b)
		token := b.LinkToken(harness.AdaMail, auth.KindVerifyEmail)
		if page := b.page(token); !strings.Contains(page, "Yes, confirm") {
			t.Errorf("page %s", page)
		}
		b.post("/verify-email", "token="+token).Want(200)
		b.post("/login", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
	})
	for name, spoil := range map[string]func(b *browser){
		"an older token": func(b *browser) {
			old := b.cookies[harness.RefreshCookie]
			b.post("/refresh", nil).Want(200)
			later(b)
			b.cookies[harness.RefreshCookie] = old
		},
		"signed out": func(b *browser) {
			old := maps.Clone(b.cookies)
			b.post("/logout", nil).Want(204)
			b.cookies = old
			later(b)
		},
		"another secret": func(b *browser) { later(b); b.cookies[harness.RefreshCookie] += "x" },
		"a second factor is required": func(b *browser) {
			later(b)
			u, err := b.Store.User(b.T.Context(), store.ByEmail(harness.AdaMail))
			if err != nil {
				b.T.Fatal(err)
			}
			b.Patch(u.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, token := start(t)
			spoil(b)
			if page := b.page(token); strings.Contains(page, "Yes, change it") {
				t.Errorf("page %s", page)
			}
			b.post("/verify-email", "token="+token)
			if u, err := b.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err != nil || u.Email != harness.AdaMail {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
	t.Run("from another site", func(t *testing.T) {
		b, token := start(t)
		later(b)
		b.Do("POST", "/verify-email", "token="+token, harness.Form, harness.Browser, b.header(), harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"}).Want(403)
		if _, err := b.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err != nil {
			t.Error(err)
		}
	})
}

// Strangers in parallel neither confirm nor lose the sign-up of a person: only the person's
// browser has an id of it.
func TestParallelSignUpsWithOneAddress(t *testing.T) {
	w := confirmingWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	browsers := make([]*browser, 8)
	var wg sync.WaitGroup
	for i := range browsers {
		browsers[i] = newBrowser(w)
		wg.Go(func() {
			a := w.DoOn(w.Handler(), "POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.Transport, harness.SameOrigin)
			browsers[i].keep(a)
		})
	}
	wg.Wait()
	token, confirmed := w.LinkToken(harness.AdaMail, auth.KindVerifyEmail), 0
	for _, b := range browsers {
		if b.post("/verify-email", map[string]any{"token": token}).Status == 200 {
			confirmed++
		}
	}
	if confirmed != 1 {
		t.Errorf("%d browsers confirm", confirmed)
	}
}
