// Package passkey adds passkeys (WebAuthn Level 3) to Authmount: as the only sign-in
// method, beside others, and as second factors.
//
//	a, err := auth.New(ctx, store, auth.WithPasskeys(passkey.New(passkey.Options{})), …)
//
// The passkeys of a service belong to its RP ID, a domain. It cannot change later: see
// [Options.RPID]. Programs that do not import this package do not contain the code that
// reads authenticators' data.
package passkey

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"golang.org/x/net/publicsuffix"

	"github.com/authmount/auth/internal/host"
)

// Options configure passkeys. The zero value suits a service whose pages are on the host of
// its base URL.
type Options struct {
	// RPID is the domain that passkeys are created for: the host of the base URL, or a parent
	// domain such as "example.com" for passkeys that also work on app.example.com. Empty: the
	// host of the base URL. Passkeys of another RP ID cannot be used any more, so New refuses
	// a change unless OtherRPID is set.
	RPID string
	// OtherRPID allows an RP ID that differs from that of stored passkeys. These stay
	// stored, and cannot be used.
	OtherRPID bool
	// Origins are further origins whose pages may use the passkeys, such as
	// "https://www.example.com". Those outside of the RP ID's domain are listed in
	// /.well-known/webauthn (related origins), see Auth.WellKnown.
	Origins []string
	// AndroidApps are the origins of Android apps:
	// "android:apk-key-hash:" and the base64url SHA-256 of the signing certificate.
	AndroidApps []string
	// Authenticators, if not empty, are the AAGUIDs of the only models that may be
	// registered. It requires a direct attestation that Metadata vouches for. Synced
	// passkeys, such as those of phones and password managers, have no such attestation and
	// are refused then.
	Authenticators []string
	// Metadata is the FIDO Alliance's metadata for Authenticators: the file that
	// https://mds3.fidoalliance.org serves. It changes every month.
	Metadata []byte
	// RefuseCopies refuses an assertion whose signature counter did not grow. It is off by
	// default, because some authenticators count badly. On or off, this leaves an event, and for
	// passkeys of one device a mail.
	RefuseCopies bool
}

// Passkeys is the option for auth.WithPasskeys. Create it with New, one for each Auth.
type Passkeys struct {
	o      Options
	app    func() string
	base   func() *url.URL
	rpID   string
	models *models // nil: all

	metadataRoot string // of tests
}

var _ host.Passkeys = (*Passkeys)(nil)

// New returns passkeys for auth.WithPasskeys. auth.New reports wrong options.
func New(o Options) *Passkeys { return &Passkeys{o: o} }

// Bind is called by auth.New.
func (p *Passkeys) Bind(base func() *url.URL, app func() string) error {
	if p.base != nil {
		return errors.New("the passkeys belong to another Auth: call passkey.New for each")
	}
	host := base().Hostname()
	p.app, p.base, p.rpID = app, base, cmp.Or(p.o.RPID, host)
	for _, origin := range p.o.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host || u.Scheme != "https" && !isLoopback(u.Hostname()) {
			return fmt.Errorf("Options.Origins: %q is not an origin such as https://www.example.com", origin)
		}
	}
	if err := p.checkRPID(host); err != nil {
		return err
	}
	for _, app := range p.o.AndroidApps {
		hash, ok := strings.CutPrefix(app, "android:apk-key-hash:")
		if b, err := base64.RawURLEncoding.DecodeString(hash); !ok || err != nil || len(b) != 32 {
			return fmt.Errorf("Options.AndroidApps: %q is not android:apk-key-hash: and a SHA-256 in base64url", app)
		}
	}
	return p.bindModels()
}

// checkRPID checks the RP ID as browsers do: it is the host of each origin or a parent
// domain of it that is not a public suffix. A host outside of it is a related origin.
func (p *Passkeys) checkRPID(host string) error {
	_, err := netip.ParseAddr(p.rpID)
	switch suffix, _ := publicsuffix.PublicSuffix(p.rpID); {
	case err == nil:
		return fmt.Errorf("Options.RPID: browsers create no passkeys for the IP address %s; use a name, such as localhost", p.rpID)
	case p.rpID != strings.ToLower(p.rpID) || strings.ContainsAny(p.rpID, "/:@ "):
		return fmt.Errorf("Options.RPID: %q is not a domain in lower case", p.rpID)
	case suffix == p.rpID && p.rpID != "localhost":
		return fmt.Errorf("Options.RPID: %q is a public suffix, for which browsers create no passkeys", p.rpID)
	case !within(host, p.rpID):
		return fmt.Errorf("Options.RPID: the host of the base URL, %s, is not in the domain %s", host, p.rpID)
	}
	return nil
}

func within(host, domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// RPID is called by auth.New.
func (p *Passkeys) RPID() (id string, others bool) { return p.rpID, p.o.OtherRPID }

// origins returns the origins whose pages may use the passkeys.
func (p *Passkeys) origins() []string {
	base := p.base()
	return append([]string{base.Scheme + "://" + base.Host}, p.o.Origins...)
}

// RelatedOrigins returns the origins for /.well-known/webauthn: those that are not in the RP
// ID's domain.
func (p *Passkeys) RelatedOrigins() []string {
	return slices.DeleteFunc(p.origins(), func(origin string) bool {
		u, err := url.Parse(origin)
		return err != nil || within(u.Hostname(), p.rpID)
	})
}

// algorithms are those that WebAuthn recommends for options. The first is preferred.
var algorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// Creation returns the options of a registration.
func (p *Passkeys) Creation(c host.PasskeyCreation) any {
	challenge, err := base64.RawURLEncoding.DecodeString(c.Challenge)
	if err != nil {
		panic(err) // made by Auth
	}
	attestation := protocol.PreferNoAttestation
	if p.models != nil {
		attestation = protocol.PreferDirectAttestation
	}
	return protocol.PublicKeyCredentialCreationOptions{
		RelyingParty: protocol.RelyingPartyEntity{ID: p.rpID, CredentialEntity: protocol.CredentialEntity{Name: p.app()}},
		User: protocol.UserEntity{
			ID: protocol.URLEncodedBase64(c.Handle), DisplayName: c.DisplayName, CredentialEntity: protocol.CredentialEntity{Name: c.Name},
		},
		Challenge: challenge, Parameters: algorithms, CredentialExcludeList: descriptors(c.Exclude), Attestation: attestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
		Timeout: timeout,
	}
}

// timeout is how long browsers wait for the user, in milliseconds: the life of a challenge.
const timeout = 5 * 60 * 1000

// Request returns the options of an authentication.
func (p *Passkeys) Request(challenge string, allow []host.Passkey) any {
	b, err := base64.RawURLEncoding.DecodeString(challenge)
	if err != nil {
		panic(err) // made by Auth
	}
	return protocol.PublicKeyCredentialRequestOptions{
		Challenge: b, RelyingPartyID: p.rpID, AllowedCredentials: descriptors(allow), UserVerification: protocol.VerificationRequired, Timeout: timeout,
	}
}

func descriptors(list []host.Passkey) (out []protocol.CredentialDescriptor) {
	for _, k := range list {
		d := protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: k.ID}
		if r, err := readRecord(k.Record); err == nil {
			for _, t := range r.Transports {
				d.Transport = append(d.Transport, protocol.AuthenticatorTransport(t))
			}
		}
		out = append(out, d)
	}
	return out
}
