package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

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
