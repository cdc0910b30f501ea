package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// A device is identified by a cookie or a header. That is no authentication: it only
// tells a device that the user has signed in on before from all others. It is as hard
// to forge as its creator made it.
const (
	deviceHeader     = "X-Device-Id"
	deviceCookieLife = int(store.DeviceLife / 1e9) // seconds

	minDeviceID, maxDeviceID = 16, 128
)

type newDeviceKey struct{}

// identify adds the client, its device and its languages to a request's context. A
// browser with cookie sessions and without a device id becomes a new device; its
// sign-in sets the cookie.
func (a *Auth) identify(ctx context.Context, r *http.Request) context.Context {
	if accept := r.Header.Get("Accept-Language"); accept != "" && len(accept) <= maxLanguages {
		ctx = context.WithValue(ctx, languageKey{}, accept)
	}
	a.noteServed(r)
	c := a.clientOf(r)
	id := a.deviceID(r)
	if id == "" && a.takesCookies(r) {
		id = rand.Text()
		ctx = context.WithValue(ctx, newDeviceKey{}, id)
	}
	c.Device = deviceHash(id)
	return context.WithValue(ctx, clientKey{}, c)
}

// deviceID returns the device id of a request, or "".
func (a *Auth) deviceID(r *http.Request) string {
	if ids := r.Header.Values(deviceHeader); len(ids) == 1 && validDeviceID(ids[0]) {
		return ids[0]
	}
	if c := soleCookie(r, a.cookieNamed("device")); c != nil && validDeviceID(c.Value) {
		return c.Value
	}
	return ""
}

func validDeviceID(id string) bool {
	return len(id) >= minDeviceID && len(id) <= maxDeviceID && !strings.ContainsFunc(id, notUnreserved)
}

// deviceHash is the stored form of a device id. The id itself would let a reader of
// the store pose as the owner's device.
func deviceHash(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("authmount device\x00" + id))
	return hex.EncodeToString(sum[:])
}

// newDevice returns the device id for the sign-in to set in the browser, if the
// session was created on a new device.
func newDevice(ctx context.Context, s Session) string {
	id, _ := ctx.Value(newDeviceKey{}).(string) // "": no new id
	if s.Device != deviceHash(id) {
		return ""
	}
	return id
}

// sentDevice returns the device that the request named itself, and "" for a new one.
func sentDevice(ctx context.Context) string {
	if ctx.Value(newDeviceKey{}) != nil {
		return ""
	}
	return clientFrom(ctx).Device
}

// deviceOf returns the request's device if the user has signed in on it before, and
// "" otherwise. c was read by onThisDevice.
func deviceOf(ctx context.Context, c store.Credentials) string {
	if !c.KnownDevice {
		return ""
	}
	return clientFrom(ctx).Device
}

// onNewDevice reports whether the user has signed in before, but not on the request's
// device. c was read by onThisDevice.
func onNewDevice(ctx context.Context, c store.Credentials) bool {
	return clientFrom(ctx).Device != "" && !c.KnownDevice && !c.User.LastSignInAt.IsZero()
}

// onThisDevice returns a key that also reads Credentials.KnownDevice.
func onThisDevice(ctx context.Context, key store.UserKey) store.UserKey {
	key.Device = clientFrom(ctx).Device
	return key
}

// knownDevice is deviceOf for flows that have not read the credentials.
func (a *Auth) knownDevice(ctx context.Context, userID string) (string, error) {
	key := onThisDevice(ctx, store.ByID(userID))
	if key.Device == "" {
		return "", nil
	}
	c, err := a.store.Credentials(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", storeFailed(err)
	}
	return deviceOf(ctx, c), nil
}

type clientKey struct{}

// requestClient is a Client in a context.
type requestClient struct {
	Client
	unsure bool // IP is the nearest address that the proxies vouch for, and may not be the client's
}

// ClientContext returns r's context for operations called from Go. Like the context of
// the endpoints, it has the client's IP address by the rules of WithTrustedProxies,
// its user agent and device, and the language for messages.
func (a *Auth) ClientContext(r *http.Request) context.Context { return a.identify(r.Context(), r) }

// ContextWithClient sets the client for operations called from Go without a request;
// see [Auth.ClientContext]. Without a client, limits per IP address do not apply.
func ContextWithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, requestClient{Client: c})
}

func clientFrom(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(requestClient)
	return c.Client
}

// ipString formats an IP address; "" if it is unknown.
func ipString(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// deviceLabel returns a readable name for a user agent, such as "Firefox on Linux",
// or "" for an unknown one. It consists of fixed words, so that a stranger's text
// never appears as ours.
func deviceLabel(userAgent string) string {
	first := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.Contains(userAgent, pairs[i]) {
				return pairs[i+1]
			}
		}
		return ""
	}
	// Browsers also name their ancestors, so the youngest comes first.
	browser := first("Edg", "Edge", "OPR/", "Opera", "SamsungBrowser", "Samsung Internet", "Firefox", "Firefox", "FxiOS", "Firefox",
		"CriOS", "Chrome", "Chrome", "Chrome", "Safari", "Safari", "curl/", "curl", "Go-http-client", "a program")
	system := first("iPhone", "iPhone", "iPad", "iPad", "Android", "Android", "CrOS", "ChromeOS", "Windows", "Windows", "Mac OS X", "macOS", "Linux", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	}
	return system
}

// A trusted device (MFAOptions.TrustDevices) replaces the second factor at sign-ins, and
// at refreshes of a session on that device (rolesAt). The store keeps the trust, and checks it in the step that creates
// a session.

// reasonTrusted is Event.Reason of a sign-in without the second factor.
const reasonTrusted = "trusted_device"

// onTrustedDevice reports whether the user trusts a device.
func (a *Auth) onTrustedDevice(ctx context.Context, u User, device string) (bool, error) {
	key := store.ByID(u.ID)
	key.Device = device
	if a.cfg.mfa.TrustDevices == 0 || key.Device == "" {
		return false, nil
	}
	c, err := a.store.Credentials(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, storeFailed(err)
	}
	return a.now().Before(c.TrustedUntil), nil
}

// trustUntil returns the time until which a sign-in trusts the session's device, or
// zero for no change. A recovery code makes no device trusted, also after a passkey that was
// the first factor.
func (a *Auth) trustUntil(s signIn, sess Session) time.Time {
	used := s.code.recovery == "" && slices.ContainsFunc(sess.AMR, func(m AMR) bool { return isFactor(m) && m.Method != methodRecovery })
	if a.cfg.mfa.TrustDevices == 0 || !s.trust || !used || sess.Device == "" {
		return time.Time{}
	}
	return sess.CreatedAt.Add(a.cfg.mfa.TrustDevices)
}

// reason is Event.Reason of the sign-in.
func (s *signIn) reason() string {
	if s.onTrusted {
		return reasonTrusted
	}
	return ""
}

// A session on a new device is reported to the account's owner, in the step that
// creates it. The store decides whether the device is new (NewDevice). Every flow that
// creates a session of an existing account calls makeSession.

// makeSession creates a session by st, as the change c. If the store refuses it
// because of a new device, makeSession retries with a notice to the owner; with
// expected it adds the notice at once. joined is credentialRef.Joined. It commits the
// change; edit completes its events.
func (a *Auth) makeSession(ctx context.Context, c store.Change, u User, s Session, joined int64, expected bool, edit func(*Event), st func(store.Change, store.NewDevice) (User, error)) (User, error) {
	if !expected {
		made, err := st(c, store.NewDevice{Refuse: true})
		if !errors.Is(err, store.ErrNewDevice) {
			if err == nil {
				a.committed(ctx, c, store.OutcomeDone, edit)
			}
			return made, err
		}
	}
	secret, t := a.newRecoveryLink(u, s, joined)
	link := ""
	if secret != "" {
		link = a.linkURL(KindNewDevice, secret)
	}
	notice := a.newChangeOf(ctx, c.By, account{User: u, recoveryLink: link}, done(Event{Type: EventNewDevice, UserID: u.ID, SessionID: s.ID}))
	with := c
	with.Events = append(slices.Clip(c.Events), store.OutcomeEvent{On: store.OutcomeNewDevice, Event: notice.Events[0].Event})
	isNew := false
	on := store.NewDevice{Messages: notice.Messages, Made: func() { isNew = true }}
	if link != "" && len(notice.Messages) > 0 { // without a notice nobody would receive the link
		on.Tokens = []store.Token{t}
	}
	made, err := st(with, on)
	if err == nil {
		a.committed(ctx, c, store.OutcomeDone, edit)
		if isNew {
			a.committed(ctx, notice, store.OutcomeDone, nil)
		}
	}
	return made, err
}
