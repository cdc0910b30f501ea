package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// What a provider may cost one request of ours.
const (
	providerTimeout = 10 * time.Second
	providerBody    = 1 << 20 // bytes of one answer
	providerHeader  = 64 << 10
	discoveryLife   = time.Hour
)

// provider is a Provider at work.
type provider struct {
	Provider
	client   *http.Client
	callback string // redirect_uri
	now      func() time.Time
	found    latest[endpoints]
	keys     *keySet
}

// endpoints is where a provider is talked to, as configured or discovered.
type endpoints struct {
	issuer, auth, token, userInfo, jwks string

	basic  bool     // the client authenticates in the header
	issues bool     // every callback names the issuer (RFC 9207)
	algs   []string // ID tokens are signed with one of these
}

// newProviders makes the configured providers ready, without asking them.
func (a *Auth) newProviders() (map[string]*provider, []string) {
	a.client = &http.Client{
		Transport: newBoundedTransport(),
		// Redirects would carry secrets to where nobody configured them to go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	all, names := map[string]*provider{}, []string{}
	for _, p := range a.cfg.providers {
		if p.Timeout == 0 {
			p.Timeout = providerTimeout
		}
		all[p.Name] = &provider{
			Provider: p, client: a.client, now: a.now,
			callback: a.cfg.baseURL.String() + "/oauth/" + p.Name + "/callback",
			found:    latest[endpoints]{timeout: p.Timeout},
			keys:     &keySet{now: a.now, kept: latest[[]jose.JSONWebKey]{timeout: p.Timeout}},
		}
		names = append(names, p.Name)
	}
	return all, names
}

// provider finds a configured provider by its name in a path.
func (a *Auth) provider(name string) (*provider, error) {
	if !a.Settings(context.Background()).OAuth.On() {
		return nil, fail(CodeMethodDisabled, nil)
	}
	if p := a.providers[name]; p != nil {
		return p, nil
	}
	return nil, fail(CodeUnknownProvider, fmt.Errorf("%.64q is none of %q", name, a.providerNames))
}

// bounded limits all that a request of ours asks of the provider.
func (p *provider) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.Timeout)
}

// endpoints answers where the provider is, and discovers it if need be.
func (p *provider) endpoints(ctx context.Context) (endpoints, error) {
	tenant := strings.NewReplacer("{tenant}", p.Tenant)
	e := endpoints{
		issuer: p.Issuer, auth: tenant.Replace(p.AuthURL), token: tenant.Replace(p.TokenURL),
		userInfo: p.UserInfoURL, jwks: tenant.Replace(p.JWKSURL), basic: p.basic, algs: []string{"RS256"},
	}
	if !p.discovers {
		return e, nil
	}
	d, err := p.found.get(ctx, p.now(), discoveryLife, p.discover)
	if err != nil {
		return e, err
	}
	e.auth, e.token = cmp.Or(e.auth, d.auth), cmp.Or(e.token, d.token)
	e.userInfo, e.jwks = cmp.Or(e.userInfo, d.userInfo), cmp.Or(e.jwks, d.jwks)
	e.basic, e.issues, e.algs = d.basic, d.issues, d.algs
	return e, nil
}

// config is the client as x/oauth2 knows it.
func (p *provider) config(e endpoints, scopes []string) (*oauth2.Config, error) {
	style := oauth2.AuthStyleInParams // also for public clients, which have no secret
	if e.basic && p.ClientSecret != "" {
		style = oauth2.AuthStyleInHeader
	}
	secret := p.ClientSecret
	if p.secret != nil {
		var err error
		if secret, err = p.secret(&p.Provider, p.now()); err != nil {
			return nil, fmt.Errorf("client secret: %w", err)
		}
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: secret, RedirectURL: p.callback, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: e.auth, TokenURL: e.token, AuthStyle: style},
	}, nil
}

// redeem trades the callback's code for tokens (RFC 6749, 4.1.3) and answers who
// they are about.
func (p *provider) redeem(ctx context.Context, e endpoints, code string, st oauthState) (Profile, *oauth2.Token, error) {
	cfg, err := p.config(e, nil)
	if err != nil {
		return Profile{}, nil, err
	}
	t, err := cfg.Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.client), code, oauth2.VerifierOption(st.Verifier))
	if err != nil {
		return Profile{}, nil, fmt.Errorf("token endpoint: %w", tokenError(err))
	}
	var who Profile
	if p.openID {
		who, err = p.whoByIDToken(ctx, e, t, st.Nonce)
	} else {
		who, err = p.fetch(ctx, &ProviderAPI{provider: p.Provider, accessToken: t.AccessToken, client: p.client})
	}
	if err == nil {
		err = who.clean()
	}
	return who, t, err
}

// tokenError keeps what the log needs of an error and drops the answer itself,
// which may hold anything.
func tokenError(err error) error {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		return fmt.Errorf("status %d, error %.100q, %.200q", r.Response.StatusCode, r.ErrorCode, r.ErrorDescription)
	}
	return withoutURL(err)
}

// withoutURL strips the URL off an error of the HTTP client: it may carry
// secrets.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// ProviderAPI asks a provider's API in the name of the person who has signed in.
type ProviderAPI struct {
	provider    Provider
	accessToken string
	client      *http.Client
}

// Get reads a JSON document of at most 1 MiB from an absolute URL into v. The
// person's access token goes along as bearer, so ask nobody but the provider. An
// answer other than 200 is a *ProviderStatusError.
func (api *ProviderAPI) Get(ctx context.Context, rawURL string, v any) error {
	return getJSON(ctx, api.client, rawURL, api.accessToken, v)
}

// ProviderStatusError is an answer of a provider's API other than 200.
type ProviderStatusError struct{ Status int }

func (e *ProviderStatusError) Error() string { return fmt.Sprintf("status %d", e.Status) }

// refused tells whether the API answered that it will not tell.
func refused(err error) bool {
	var s *ProviderStatusError
	return errors.As(err, &s) && (s.Status == http.StatusForbidden || s.Status == http.StatusNotFound)
}

func getJSON(ctx context.Context, client *http.Client, rawURL, bearer string, v any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, http.NoBody)
	if err != nil {
		return errors.New("malformed URL")
	}
	r.Header.Set("Accept", "application/json")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	where := r.URL.Host + r.URL.Path
	res, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", where, withoutURL(err))
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", where, &ProviderStatusError{res.StatusCode})
	}
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// boundedTransport refuses answers that do not end.
type boundedTransport struct{ base http.RoundTripper }

func newBoundedTransport() http.RoundTripper {
	base := http.DefaultTransport
	if t, ok := base.(*http.Transport); ok {
		t = t.Clone()
		t.MaxResponseHeaderBytes = providerHeader
		base = t
	}
	return boundedTransport{base}
}

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.base.RoundTrip(r)
	if err == nil {
		res.Body = &boundedBody{ReadCloser: res.Body, left: providerBody}
	}
	return res, err
}

// CloseIdleConnections lets go of what http.Client.CloseIdleConnections asks for.
func (t boundedTransport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

type boundedBody struct {
	io.ReadCloser
	left int
}

var errBodyTooLarge = errors.New("the answer is larger than 1 MiB")

func (b *boundedBody) Read(p []byte) (int, error) {
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errBodyTooLarge
	}
	return n, err
}

// latest is a value that is fetched when it is needed, by one caller for all,
// and kept for a while. An old one outlives a failure to renew it.
type latest[T any] struct {
	timeout time.Duration // of a fetch

	mu    sync.Mutex
	value T
	at    time.Time     // of value; zero: none yet
	again time.Time     // not to be asked for anew before, after a failure
	busy  chan struct{} // closed when the fetch under way has ended
	err   error         // of the last fetch
}

func (l *latest[T]) get(ctx context.Context, now time.Time, life time.Duration, fetch func(context.Context) (T, error)) (T, error) {
	l.mu.Lock()
	if !l.at.IsZero() && (now.Sub(l.at) < life || (life > 0 && now.Before(l.again))) {
		defer l.mu.Unlock()
		return l.value, nil
	}
	wait, old := l.busy, l.at
	if wait == nil {
		wait = make(chan struct{})
		l.busy = wait
		go l.renew(context.WithoutCancel(ctx), now, fetch, wait)
	}
	l.mu.Unlock()
	if !old.IsZero() && life > 0 { // the old value will do, if the new one is slow
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience(ctx))
		defer cancel()
	}
	select {
	case <-ctx.Done():
		if old.IsZero() || life == 0 {
			return *new(T), ctx.Err()
		}
	case <-wait:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() {
		return l.value, l.err
	}
	return l.value, nil
}

// patience is how long to wait for a new value where the old one would do: a part
// of the time there is.
func patience(ctx context.Context) time.Duration {
	d := 2 * time.Second
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/4)
	}
	return d
}

// renew fetches apart from any one caller: they may leave while others wait.
func (l *latest[T]) renew(ctx context.Context, now time.Time, fetch func(context.Context) (T, error), done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	v, err := guarded(ctx, fetch)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.value, l.at = v, now
	} else {
		l.again = now.Add(time.Minute) // do not ask a provider in trouble every time
	}
	l.busy = nil
	close(done)
}

// guarded turns a panic over a stranger's document into an error.
func guarded[T any](ctx context.Context, fetch func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return fetch(ctx)
}
