package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
)

func (k kit) Settings(stored store.StoredSettings) ([]host.Setting, error) {
	d, err := parseDocument(stored.Document)
	if err != nil {
		return nil, fail(CodeInternal, err)
	}
	o := &k.a.settings.options
	s, faults := o.settle(&k.a.cfg, d)
	var list []host.Setting
	for i := range declaredSettings {
		f := &declaredSettings[i]
		reason := o.lockedBy(&k.a.cfg, f)
		list = append(list, host.Setting{Name: f.name, Value: f.value(&s), Source: o.source(f, d, faults), Locked: reason != "", Why: reason})
	}
	return list, nil
}

// settingsPair is the private part of a host.SettingsEdit.
type settingsPair struct{ before, after Settings }

func (k kit) EditSettings(stored store.StoredSettings, changes map[string]json.RawMessage) (host.SettingsEdit, error) {
	var e host.SettingsEdit
	d, err := parseDocument(stored.Document)
	if err != nil {
		return e, fail(CodeInternal, err)
	}
	o := &k.a.settings.options
	next, err := o.edit(&k.a.cfg, d, changes)
	if err != nil {
		return e, err
	}
	if e.Document, err = json.Marshal(next); err != nil {
		return e, fail(CodeBadJSON, err)
	}
	var both settingsPair
	both.before, _ = o.settle(&k.a.cfg, d)
	both.after, _ = o.settle(&k.a.cfg, next)
	e.Private = both
	e.Changes = map[string]store.FieldChange{}
	for _, f := range declaredSettings {
		if was, is := f.value(&both.before), f.value(&both.after); !reflect.DeepEqual(was, is) {
			e.Changes[f.name] = store.FieldChange{Before: was, After: is}
		}
	}
	return e, nil
}

func (k kit) CanSignIn(ctx context.Context, e host.SettingsEdit, c store.Credentials, factor bool) (before, after bool, err error) {
	both, _ := e.Private.(settingsPair)
	var list store.Factors
	if k.a.cfg.passkeys != nil {
		if list, err = k.a.factors.Factors(ctx, c.User.ID); err != nil {
			return false, false, storeFailed(err)
		}
	}
	passkey := len(passkeysOf(list.List)) > 0
	only := passkey && list.RecoveryLeft == 0 && !slices.ContainsFunc(list.List, func(f Factor) bool { return f.Enabled && f.Kind == store.FactorTOTP })
	return k.a.canSignIn(both.before, c, factor, passkey, only), k.a.canSignIn(both.after, c, factor, passkey, only), nil
}

func (k kit) ReloadSettings(ctx context.Context) {
	if err := k.a.readSettings(context.WithoutCancel(ctx)); err != nil {
		k.a.cfg.log.WarnContext(ctx, "auth: the settings cannot be read", "error", err)
	}
}

func (k kit) SettingsState() (revision int64, at time.Time) {
	if n := k.a.settings.readAt.Load(); n > 0 {
		at = time.Unix(0, n).UTC()
	}
	return k.a.settings.now.Load().revision, at
}

// Tests of the configuration, and diagnostics, for operators.

// testWait is the timeout for the first attempt to send a test message.
const testWait = 10 * time.Second

// testMessage is a message to an operator's own email address or phone number. Its rate
// limits have been charged.
type testMessage struct {
	a     *Auth
	to    User
	out   outbox.Outgoing
	id    string
	first <-chan error
}

func (k kit) PermitTest(ctx context.Context, u User, by Channel) (host.TestMessage, error) {
	t := &testMessage{a: k.a, to: u}
	var err error
	if by == ChannelEmail {
		if u.Email == "" || !u.EmailVerified() {
			return nil, invalid("email", "your own account has no confirmed address")
		}
		t.out = outbox.Outgoing{Kind: KindTestMail, To: u.Email}
		if t.out.Permit, err = k.a.takeSend(ctx, atOwners, KindTestMail, u.Email); err != nil {
			return nil, err
		}
		return t, nil
	}
	if k.a.cfg.sms == nil {
		return nil, fail(CodeMethodDisabled, nil)
	}
	if u.Phone == "" || !u.PhoneVerified() {
		return nil, invalid("phone", "your own account has no confirmed number")
	}
	t.out = outbox.Outgoing{Kind: KindTestSMS, Channel: ChannelSMS, To: u.Phone}
	if err = k.a.takeSMS(ctx, atOwners, u.Phone); err == nil { // as for a code
		t.out.Permit, err = k.a.spendSMS(ctx, u.Phone, true)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Add puts the message into a change, in place of one of an earlier change that failed.
func (t *testMessage) Add(ctx context.Context, c *store.Change) {
	t.Forget()
	before := len(c.Messages)
	t.a.enclose(ctx, c, t.out, t.to, nil)
	if len(c.Messages) > before {
		t.id = c.Messages[before].ID
		t.first = t.a.outbox.WatchFirstAttempt(t.id)
	}
}

// Wait waits for the first attempt to send the message, after its change is committed. done
// reports whether there was one; err is the sender's error.
func (t *testMessage) Wait(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	select {
	case err := <-t.first:
		return true, err
	case <-ctx.Done():
		return false, nil
	}
}

// Forget stops watching the message. It is still sent.
func (t *testMessage) Forget() {
	if t.id != "" {
		t.a.outbox.ForgetFirstAttempt(t.id)
	}
}

func (k kit) HasProvider(name string) bool { return k.a.providers[name] != nil }

func (k kit) TestProvider(ctx context.Context, name string) (detail string, err error) {
	p := *k.a.providers[name]
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	if p.discovery != nil { // without the cached document
		p.discovery = oidc.NewDiscovery(p.http, p.Issuer, p.now, p.Timeout)
	}
	e, err := p.endpoints(ctx)
	if err != nil {
		return "", err
	}
	if _, err := p.config(e); err != nil {
		return "", errors.New("the client secret cannot be created") // the cause may quote the key
	}
	if e.jwks == "" {
		return "it answers; it has no keys to read", reach(ctx, p.http, e.auth)
	}
	n, err := oidc.NewKeySet(p.http, p.now, p.Timeout).Count(ctx, e.jwks)
	switch {
	case err != nil:
		return "", fmt.Errorf("keys: %w", err)
	case n == 0:
		return "", errors.New("it publishes no usable key")
	}
	return fmt.Sprintf("it answers; %d keys", n), nil
}

// reach reports whether a server answers without a server error.
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
		return fmt.Errorf("it answers with status %d", res.StatusCode)
	}
	return nil
}

func (k kit) Shorten(s string) string {
	const most = 300
	if r := []rune(visible.Line(s)); len(r) > most {
		return string(r[:most]) + "…"
	}
	return visible.Line(s)
}

type seenKey struct{}

func (k kit) WithFacts(r *http.Request) context.Context {
	c := host.RequestClient{Peer: r.RemoteAddr, Unheeded: clientip.HeadersIgnored(r, k.a.cfg.trustedProxies)}
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header.Get(h) != "" {
			c.Forwarded = append(c.Forwarded, h)
		}
	}
	return context.WithValue(r.Context(), seenKey{}, c)
}

func (k kit) Diagnose(ctx context.Context) (host.Diagnosis, error) {
	client, _ := ctx.Value(seenKey{}).(host.RequestClient)
	client.IP, client.TrustedProxies = ipString(clientFrom(ctx).IP), len(k.a.cfg.trustedProxies)
	d := host.Diagnosis{Now: k.a.now(), Client: client, Mail: host.MailQueue{Here: k.a.outbox.Pending()}}
	if d.Client.Forwarded == nil {
		d.Client.Forwarded = []string{}
	}
	revision, read := k.SettingsState()
	d.Settings = host.SettingsAt{Revision: revision, ReadAt: timeOrNil(read), Failing: k.a.settings.failing.Load()}
	var set struct {
		Keys []host.KeyInfo `json:"keys"`
	}
	if err := json.Unmarshal(k.a.keys.JWKS(), &set); err != nil {
		return d, fail(CodeInternal, err)
	}
	d.Keys = append([]host.KeyInfo{}, set.Keys...)
	for i := range d.Keys {
		d.Keys[i].Signs = d.Keys[i].ID == k.a.keys.Signing().ID
	}
	d.Clocks = []host.ClockDifference{}
	if k.a.admin == nil {
		return d, nil
	}
	start, before := time.Now(), k.a.now()
	s, err := k.a.admin.Diagnose(ctx)
	if err != nil {
		return d, storeFailed(err)
	}
	d.Store.Response = time.Since(start).Seconds()
	if d.Store.Now = timeOrNil(s.Now); d.Store.Now != nil {
		ahead := s.Now.Sub(k.a.now()).Seconds()
		d.Store.Ahead = &ahead
	}
	d.Clocks = k.clockDifferences(s.Now, before, k.a.now())
	if s.Schema > 0 {
		d.Store.Schema = &s.Schema
	}
	if k.a.outbox.Durable() {
		d.Mail.Waiting, d.Mail.Oldest = &s.Waiting, timeOrNil(s.Oldest)
	}
	d.Feed = host.Feed{Following: s.Feeds, LookedAt: timeOrNil(s.FeedAt)}
	return d, nil
}

// clockDifferences compares clocks. The store's clock, if it has one, was read between before
// and after, so a slow answer is no difference.
func (k kit) clockDifferences(stores, before, after time.Time) []host.ClockDifference {
	list := []host.ClockDifference{}
	add := func(with string, here, there time.Time) {
		name, _ := os.Hostname() // without a name, the warning still has the clocks
		list = append(list, host.ClockDifference{Instance: name, With: with, Here: here.UTC(), There: there.UTC(), Ahead: there.Sub(here).Seconds()})
	}
	if !stores.IsZero() {
		here := stores
		switch {
		case stores.Before(before):
			here = before
		case stores.After(after):
			here = after
		}
		k.a.clocks.Heard(stores.Sub(here), after)
		if stores.Sub(here).Abs() > host.MaxClockDifference {
			add(host.ClockOfStore, here, stores)
		}
	}
	if here, there, ok := k.a.clocks.Refused(after); ok {
		add(host.ClockOfToken, here, there)
	}
	return list
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
