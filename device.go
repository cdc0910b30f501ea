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

// A device says who it is by a cookie or by a header. That is no proof of
// anything: it only tells a place where somebody has signed in before from all
// others, and is as hard to guess as who made it saw to.
const (
	deviceHeader     = "X-Device-Id"
	deviceCookieLife = int(store.DeviceLife / 1e9) // seconds

	minDeviceID, maxDeviceID = 16, 128
)

type newDeviceKey struct{}

// identify adds to a request's context who sent it, and in which language to write
// to them. A browser with sessions in cookies that does not say which device it is
// becomes a new one, and is told so with the cookies of its sign-in.
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

// deviceID is what a request says of its device, or "".
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

// deviceHash is the form in which a device is kept. The identifier itself
// would let whoever reads the store pass for its owner's device.
func deviceHash(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("authmount device\x00" + id))
	return hex.EncodeToString(sum[:])
}

// newDevice is what the browser of a sign-in is to say from now on, if the
// session was made on a device that is new.
func newDevice(ctx context.Context, s Session) string {
	id, _ := ctx.Value(newDeviceKey{}).(string) // "": none was made up
	if s.Device != deviceHash(id) {
		return ""
	}
	return id
}

// deviceOf is the device that asks, if the user has signed in on it before; ""
// otherwise. c was read by onThisDevice.
func deviceOf(ctx context.Context, c store.Credentials) string {
	if !c.KnownDevice {
		return ""
	}
	return clientFrom(ctx).Device
}

// onNewDevice tells whether the user has signed in, and not on the device that
// asks. c was read by onThisDevice.
func onNewDevice(ctx context.Context, c store.Credentials) bool {
	return clientFrom(ctx).Device != "" && !c.KnownDevice && !c.User.LastSignInAt.IsZero()
}

// onThisDevice asks for Credentials.KnownDevice, too.
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
	unsure bool // IP is the nearest place that proxies vouch for, and may not be the client's
}

// ClientContext is r's context for operations called from Go: with the client's
// address by the rules of WithTrustedProxies, what it says of itself and its device,
// and the language that messages should have, as the endpoints have them.
func (a *Auth) ClientContext(r *http.Request) context.Context { return a.identify(r.Context(), r) }

// ContextWithClient says who is asking, for operations called from Go where there
// is no request; see [Auth.ClientContext]. Without it, limits per IP address do not
// apply.
func ContextWithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, requestClient{Client: c})
}

func clientFrom(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(requestClient)
	return c.Client
}

// ipString is an address, or "" if it is not known.
func ipString(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// deviceLabel is what people call the device behind a user agent, such as
// "Firefox on Linux"; "" if it does not say. It is a hint for people, made of
// fixed words, so that nothing that a stranger wrote is shown as ours.
func deviceLabel(userAgent string) string {
	first := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.Contains(userAgent, pairs[i]) {
				return pairs[i+1]
			}
		}
		return ""
	}
	// Browsers name their ancestors, too, so the youngest comes first.
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

// A device that its user trusts (MFAOptions.TrustDevices) stands in for the second
// factor at sign-ins, in the one place where that is asked for. The store keeps and
// judges trust, in the step that makes a session.

// reasonTrusted is Event.Reason of a sign-in without the second factor.
const reasonTrusted = "trusted_device"

// onTrustedDevice tells whether the device that asks is one that the user trusts.
func (a *Auth) onTrustedDevice(ctx context.Context, u User) (bool, error) {
	key := onThisDevice(ctx, store.ByID(u.ID))
	if a.cfg.mfa.TrustDevices == 0 || key.Device == "" {
		return false, nil
	}
	c, err := a.store.Credentials(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, storeFailed(err)
	}
	return a.now().Before(c.TrustedUntil), nil
}

// trustUntil is until when the device of a session is trusted from its sign-in on;
// zero: that changes nothing. A recovery code has nobody's device trusted.
func (a *Auth) trustUntil(s signIn, sess Session) time.Time {
	byApp := slices.ContainsFunc(sess.AMR, func(m AMR) bool { return m.Method == methodTOTP })
	if a.cfg.mfa.TrustDevices == 0 || !s.trust || !byApp || sess.Device == "" {
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

// A session on a device that the account was not seen on is told to its owner, in
// the step that makes it. The store judges the device (NewDevice); every flow that
// makes a session of an account that was there before goes through makeSession.

// makeSession has a session made by store, as the change c. If the store refuses it
// for its device, it is made once more with what the owner is told; at once, if the
// device is expected to be new. It commits the change; edit completes its events.
func (a *Auth) makeSession(ctx context.Context, c store.Change, u User, s Session, expected bool, edit func(*Event), st func(store.Change, store.NewDevice) (User, error)) (User, error) {
	if !expected {
		made, err := st(c, store.NewDevice{Refuse: true})
		if !errors.Is(err, store.ErrNewDevice) {
			if err == nil {
				a.committed(ctx, c, store.OutcomeDone, edit)
			}
			return made, err
		}
	}
	secret, t := a.newStopLink(u, s)
	link := ""
	if secret != "" {
		link = a.linkURL(KindNewDevice, secret)
	}
	told := a.newChangeOf(ctx, c.By, account{User: u, stop: link}, done(Event{Type: EventNewDevice, UserID: u.ID, SessionID: s.ID}))
	with := c
	with.Events = append(slices.Clip(c.Events), store.OutcomeEvent{On: store.OutcomeNewDevice, Event: told.Events[0].Event})
	isNew := false
	on := store.NewDevice{Messages: told.Messages, Made: func() { isNew = true }}
	if link != "" && len(told.Messages) > 0 { // a link that nobody is told need not be stored
		on.Tokens = []store.Token{t}
	}
	made, err := st(with, on)
	if err == nil {
		a.committed(ctx, c, store.OutcomeDone, edit)
		if isNew {
			a.committed(ctx, told, store.OutcomeDone, nil)
		}
	}
	return made, err
}
