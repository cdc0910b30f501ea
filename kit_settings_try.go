package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
)

// What operators try out, and what they are told of how the service is doing.

// testWait is for how long an operator waits for the first attempt at a test message.
const testWait = 10 * time.Second

// KitTest is a message to an operator's own address or number, which has drawn its
// limits.
type KitTest struct {
	a     *Auth
	to    User
	out   outbox.Outgoing
	id    string
	first <-chan error
}

// DrawTest draws for a test message to somebody. Errors: CodeValidationFailed unless
// they have proved where it goes, CodeMethodDisabled without a sender, CodeRateLimited.
func (k Kit) DrawTest(ctx context.Context, u User, by Channel) (*KitTest, error) {
	t := &KitTest{a: k.a, to: u}
	var err error
	if by == ChannelEmail {
		if u.Email == "" || !u.EmailVerified() {
			return nil, invalid("email", "your own account has no confirmed address")
		}
		t.out = outbox.Outgoing{Kind: KindTestMail, To: u.Email}
		t.out.Permit, err = k.a.takeSend(ctx, atOwners, KindTestMail, u.Email)
		return t, err
	}
	if k.a.cfg.sms == nil {
		return nil, fail(CodeMethodDisabled, nil)
	}
	if u.Phone == "" || !u.PhoneVerified() {
		return nil, invalid("phone", "your own account has no confirmed number")
	}
	t.out = outbox.Outgoing{Kind: KindTestSMS, Channel: ChannelSMS, To: u.Phone}
	if err = k.a.takeSMS(ctx, atOwners, u.Phone); err == nil { // like the code that it tries out
		t.out.Permit, err = k.a.spendSMS(ctx, u.Phone)
	}
	return t, err
}

// Enclose puts the message into a change, in place of one of a change that did not come about.
func (t *KitTest) Enclose(ctx context.Context, c *store.Change) {
	t.Forget()
	before := len(c.Messages)
	t.a.enclose(ctx, c, t.out, t.to, nil)
	if len(c.Messages) > before {
		t.id = c.Messages[before].ID
		t.first = t.a.outbox.WatchFirst(t.id)
	}
}

// Wait waits for the first attempt at the message, once its change has come about.
// done tells whether there was one by now; err is what the sender said.
func (t *KitTest) Wait(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	select {
	case err := <-t.first:
		return true, err
	case <-ctx.Done():
		return false, nil
	}
}

// Forget ends the interest in the message, not the message.
func (t *KitTest) Forget() {
	if t.id != "" {
		t.a.outbox.ForgetFirst(t.id)
	}
}

// HasProvider tells whether there is a provider of a name.
func (k Kit) HasProvider(name string) bool { return k.a.providers[name] != nil }

// ReachProvider asks a provider for its discovery document and its keys, or, where it
// has neither, whether it answers at all. detail tells what it found.
func (k Kit) ReachProvider(ctx context.Context, name string) (detail string, err error) {
	p := *k.a.providers[name]
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	if p.discovery != nil { // as nobody remembers it
		p.discovery = oidc.NewDiscovery(p.http, p.Issuer, p.now, p.Timeout)
	}
	e, err := p.endpoints(ctx)
	if err != nil {
		return "", err
	}
	if _, err := p.config(e); err != nil {
		return "", errors.New("the client secret cannot be made") // whatever the cause says of it
	}
	if e.jwks == "" {
		return "it answers; it has no keys to read", reach(ctx, p.http, e.auth)
	}
	n, err := oidc.NewKeySet(p.http, p.now, p.Timeout).Count(ctx, e.jwks)
	switch {
	case err != nil:
		return "", fmt.Errorf("keys: %w", err)
	case n == 0:
		return "", errors.New("it publishes no key that can be used")
	}
	return fmt.Sprintf("it answers; %d keys", n), nil
}

// reach asks whether a server answers, whatever it says.
func reach(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("it answers %d", res.StatusCode)
	}
	return nil
}

// Short is what of a text a list has room for.
func (k Kit) Short(s string) string {
	const most = 300
	if r := []rune(visible.Line(s)); len(r) > most {
		return string(r[:most]) + "…"
	}
	return visible.Line(s)
}

// KitDiagnosis is how the service is doing, as one instance sees it.
type KitDiagnosis struct {
	Now      time.Time      `json:"now"`
	Store    KitStoreHealth `json:"store"`
	Client   KitClient      `json:"client"`
	Mail     KitMailQueue   `json:"mail"`
	Keys     []KitKeyInfo   `json:"keys"`
	Settings KitSettingsAt  `json:"settings"`
	Feed     KitFeed        `json:"feed"`
}

// KitStoreHealth is the part of a KitDiagnosis about the store.
type KitStoreHealth struct {
	Now      *time.Time `json:"now"`      // null: it has no clock of its own
	Ahead    *float64   `json:"ahead_by"` // seconds by which its clock is ahead of this process's
	Schema   *int       `json:"schema_version"`
	Response float64    `json:"response_seconds"` // of what was read for this
}

// KitClient is who asks, as it is seen here.
type KitClient struct {
	IP             string   `json:"ip"`              // by the rules of WithTrustedProxies
	Peer           string   `json:"peer"`            // who is connected: the client, or a proxy
	Forwarded      []string `json:"forwarded"`       // the names of headers that speak of another client
	Unheeded       bool     `json:"unheeded"`        // they count for nothing, as the peer is no trusted proxy
	TrustedProxies int      `json:"trusted_proxies"` // how many ranges WithTrustedProxies names
}

// KitMailQueue is the part of a KitDiagnosis about messages.
type KitMailQueue struct {
	Here    int        `json:"here"`    // in this process
	Waiting *int       `json:"waiting"` // in the store, counted up to 10,000; null: it keeps none
	Oldest  *time.Time `json:"oldest"`
}

// KitKeyInfo is a public key that verifies access tokens. Its age is not known here.
type KitKeyInfo struct {
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Signs     bool   `json:"signs"`
}

// KitSettingsAt tells which settings are in force here.
type KitSettingsAt struct {
	Revision int64      `json:"revision"`
	ReadAt   *time.Time `json:"read_at"` // null: the store keeps none
	Failing  bool       `json:"failing"` // the store cannot be read
}

// KitFeed is the part of a KitDiagnosis about the feed of revocations.
type KitFeed struct {
	Following int        `json:"following"` // how many feeds this process follows
	LookedAt  *time.Time `json:"looked_at"`
}

type seenKey struct{}

// Seen is a request's context, with what Diagnose tells of the request.
func (k Kit) Seen(r *http.Request) context.Context {
	c := KitClient{Peer: r.RemoteAddr, Unheeded: clientip.Unheeded(r, k.a.cfg.trustedProxies)}
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header.Get(h) != "" {
			c.Forwarded = append(c.Forwarded, h)
		}
	}
	return context.WithValue(r.Context(), seenKey{}, c)
}

// Diagnose tells how the service is doing.
func (k Kit) Diagnose(ctx context.Context) (KitDiagnosis, error) {
	client, _ := ctx.Value(seenKey{}).(KitClient)
	client.IP, client.TrustedProxies = ipString(clientFrom(ctx).IP), len(k.a.cfg.trustedProxies)
	d := KitDiagnosis{Now: k.a.now(), Client: client, Mail: KitMailQueue{Here: k.a.outbox.UnderWay()}}
	if d.Client.Forwarded == nil {
		d.Client.Forwarded = []string{}
	}
	revision, read := k.SettingsRead()
	d.Settings = KitSettingsAt{Revision: revision, ReadAt: known(read), Failing: k.a.settings.failing.Load()}
	var set struct {
		Keys []KitKeyInfo `json:"keys"`
	}
	if err := json.Unmarshal(k.a.keys.JWKS(), &set); err != nil {
		return d, fail(CodeInternal, err)
	}
	d.Keys = append([]KitKeyInfo{}, set.Keys...)
	for i := range d.Keys {
		d.Keys[i].Signs = d.Keys[i].ID == k.a.keys.Signing().ID
	}
	store, ok := store.Capability[store.DiagnosticStore](k.a.store)
	if !ok {
		return d, nil
	}
	begun := time.Now()
	s, err := store.Diagnose(ctx)
	if err != nil {
		return d, storeFailed(err)
	}
	d.Store.Response = time.Since(begun).Seconds()
	if d.Store.Now = known(s.Now); d.Store.Now != nil {
		ahead := time.Until(s.Now).Seconds()
		d.Store.Ahead = &ahead
	}
	if s.Schema > 0 {
		d.Store.Schema = &s.Schema
	}
	if k.a.outbox.Durable() {
		d.Mail.Waiting, d.Mail.Oldest = &s.Waiting, known(s.Oldest)
	}
	d.Feed = KitFeed{Following: s.Feeds, LookedAt: known(s.FeedAt)}
	return d, nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
