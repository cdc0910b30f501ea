package auth

import (
	"slices"
	"strings"
	"testing"
)

// routeFlags is what the route table says of each route besides how it may fail, written
// down once more: whoever opens a route to more people, or leaves a guard out, has to mean
// it.
const routeFlags = `
DELETE /me/identities/{provider}: signedIn
DELETE /me: signedIn
DELETE /sessions/{id}: signedIn
DELETE /sessions: signedIn
GET /.well-known/jwks.json: open
GET /.well-known/openid-configuration: open
GET /healthz: open whenOff
GET /invitations/accept: open
GET /magic-link/verify: open whenOff
GET /me/export: signedIn
GET /me: signedIn whenOff act
GET /oauth/{provider}/callback: open whenOff
GET /oauth/{provider}: open whenOff
GET /openapi.json: open
GET /reset-password: open
GET /secure-account: open
GET /sessions: signedIn act
GET /settings: keyed
GET /verify-email: open
PATCH /me: signedIn
POST /2fa/disable: signedIn
POST /2fa/recovery-codes: signedIn
POST /2fa/setup-totp: enrolling whenOff
POST /2fa/verify-and-enable: enrolling whenOff
POST /2fa/verify: keyed whenOff done=signed_in
POST /exchange: keyed whenOff done=signed_in
POST /forgot-password: keyed captcha done=sent
POST /invitations/accept: keyed form
POST /login: keyed whenOff done=signed_in
POST /logout: keyed whenOff act done=signed_out
POST /magic-link/send: keyed captcha whenOff done=sent
POST /magic-link/verify: keyed whenOff form
POST /me/confirm: signedIn whenOff
POST /me/identities/{provider}: signedIn
POST /me/password: signedIn
POST /oauth/{provider}/callback: open whenOff
POST /oauth/{provider}/id-token: keyed whenOff
POST /otp/send: keyed captcha whenOff done=sent
POST /otp/verify: keyed whenOff done=signed_in
POST /refresh: keyed whenOff
POST /reset-password: keyed form
POST /secure-account: keyed form
POST /signup: keyed captcha done=sent
POST /verify-email: keyed form
`

// Each route is open to those it is meant for, with the guards that it needs.
func TestRoutesAreGuardedAsIsMeant(t *testing.T) {
	names := map[access]string{open: "open", keyed: "keyed", signedIn: "signedIn", enrolling: "enrolling"}
	var got []string
	for _, r := range (&Auth{}).routes() {
		line := r.pattern + ": " + names[r.access]
		for _, flag := range []struct {
			name string
			on   bool
		}{{"captcha", r.captcha}, {"whenOff", r.whenOff}, {"streams", r.streams}, {"judges", r.judges}, {"act", r.act}, {"done=" + r.done, r.done != ""}, {"form", r.form != nil}} {
			if flag.on {
				line += " " + flag.name
			}
		}
		if got = append(got, line); r.handle == nil {
			t.Errorf("%s: nobody handles it", r.pattern)
		}
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(routeFlags), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not meant: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("meant, and not so: %s", line)
		}
	}
}
