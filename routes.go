package auth

import (
	"cmp"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/authmount/auth/internal/openapi"
)

// access says who may call an endpoint.
type access int

const (
	open      access = iota // anyone, as for browser navigations
	keyed                   // the public API key, where keys are configured
	signedIn                // the API key and a bearer token of a live session
	enrolling               // signedIn, or the token of a sign-in that waits for enrolment
	operating               // signedIn, or a secret key alone; no cookie, unless the route has cookies
	elsewhere               // a secret key, or a caller that the adding package authenticates itself
)

// route is one row of the table below.
type route struct {
	pattern       string // method and path below the mount
	access        access
	limits        []string     // the fields of RateLimits that may refuse it
	errors        []Code       // beyond those that follow from access, a body and limits
	statuses      map[Code]int // of errors with another status than in errorTable
	handle        func(http.ResponseWriter, *http.Request) error
	form          func(http.ResponseWriter, *http.Request) error // posts of the link pages, which need no key
	captcha       bool                                           // it needs a captcha, if captchas are on
	whenOff       bool                                           // it works while Settings.Enabled is off, for users who may change that
	cookies       bool                                           // operating: session cookies count, on requests of the service's own origin
	noKeys        bool                                           // its handler refuses every secret key
	streams       bool                                           // it reads its body itself, in parts
	authenticates bool                                           // it authenticates the caller itself
	act           bool                                           // impersonators may call it, see impersonate.go; they may not call the others
	done          string                                         // it accepts forms of the application's pages; the result that a page then shows
}

// routes is the route table: every endpoint with its access, its limits, its errors,
// and the handler in its feature's file. Limits are counted inside the operations, so
// that they also apply to callers from Go.
func (a *Auth) routes() []route {
	var (
		wrongPasswords = []string{"LoginPerAccount", "LoginPerIP", "SignInsPerAccount", "ConsecutiveFailures"}
		wrongFactors   = []string{"FactorPerUser", "CodesPerIP", "ConsecutiveFailures"}
		wrongCodes     = []string{"CodesPerAddress", "CodesPerAddressDaily", "CodesPerRecipientDaily"} // used together with wrongFactors
		wrongMailCodes = []string{"CodesPerAddress", "CodesPerAddressDaily", "CodesPerRecipientDaily", "CodesPerIP", "ConsecutiveFailures"}
		mails          = []string{"SendGap", "SendPerAddress", "SendPerIP"}
		texts          = []string{"SendGap", "SendPerAddress", "SendPerIP", "SMSBudget"}
		signUps        = []string{"SignupPerIP", "SendPerAddress", "SendPerIP", "SMSBudget"}
		first          = []string{"SignupPerIP"}                                // the first sign-in creates the account
		atFirst        = []string{"SignupPerIP", "SendPerAddress", "SendPerIP"} // also sends a link to an address that the provider did not verify

		// The errors of any sign-in, and of one that may also create the account.
		signIn      = []Code{CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired}
		firstSignIn = []Code{CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired, CodeMethodDisabled, CodeSignupDisabled}
		// The errors of a session in the request for a link.
		maybeWithin = []Code{CodeBadToken, CodeSessionEnded}
		atProvider  = []Code{CodeUnknownProvider, CodeProviderError}
		// The errors of adding a passkey, and of changing one.
		addPasskey    = []Code{CodeMethodDisabled, CodeReauthNeeded, CodeInsufficientAAL, CodeEmailNotVerified, CodeTargetStronger}
		changePasskey = []Code{CodeMethodDisabled, CodeReauthNeeded, CodeInsufficientAAL, CodeTargetStronger, CodePasskeyNotFound, CodeMFAEnforced}
		callback      = slices.Concat(firstSignIn, atProvider, []Code{
			CodeBadOAuthState, CodeOAuthDenied, CodeInvalidToken, CodeInvalidCode, CodeEmailNotVerified, CodeAccountExists, CodeIdentityAlreadyExists})
	)
	return []route{
		{pattern: "POST /signup", access: keyed, captcha: true, handle: a.handleSignUp, done: doneSent,
			limits: signUps,
			errors: []Code{
				CodeUserAlreadyExists, CodeWeakPassword, CodeValidationFailed, CodeRedirectNotAllowed, CodeSignupDisabled,
				CodeMethodDisabled, CodeUserBanned, CodeMFAEnrollmentRequired, CodeOverloaded}},
		{pattern: "POST /login", access: keyed, whenOff: true, handle: a.handleLogin, done: doneSignedIn,
			limits: slices.Concat(wrongPasswords, wrongCodes, []string{"FactorPerUser", "CodesPerIP"}),
			errors: plus(signIn, CodeInvalidCredentials, CodeMethodDisabled, CodeInvalidTOTPCode, CodeValidationFailed, CodeOverloaded)},
		{pattern: "POST /refresh", access: keyed, whenOff: true, handle: a.handleRefresh,
			limits:   []string{"RefreshPerSession"},
			errors:   plus(signIn, CodeInvalidRefreshToken, CodeRefreshTokenReused, CodeSessionEnded, CodeValidationFailed),
			statuses: map[Code]int{CodeSessionEnded: http.StatusBadRequest}}, // a 401 would make clients refresh
		{pattern: "POST /logout", access: keyed, act: true, whenOff: true, handle: a.handleLogout, done: doneSignedOut,
			errors: []Code{CodeMissingToken, CodeBadToken, CodeInvalidRefreshToken, CodeValidationFailed}},
		{pattern: "POST /exchange", access: keyed, whenOff: true, handle: a.handleExchange, done: doneSignedIn,
			limits: first,
			errors: plus(firstSignIn, CodeInvalidCode, CodeInvalidToken, CodeBadCodeVerifier, CodeIdentityAlreadyExists, CodeEmailNotVerified, CodeValidationFailed)},

		{pattern: "GET /oauth/{provider}", access: open, whenOff: true, handle: a.handleOAuthStart,
			limits: []string{"OAuthPerIP"},
			errors: plus(atProvider, CodeRedirectNotAllowed, CodeMethodDisabled, CodeValidationFailed)},
		{pattern: "GET /oauth/{provider}/callback", access: open, whenOff: true, handle: a.handleOAuthCallback, limits: slices.Concat(atFirst, wrongMailCodes), errors: callback},
		{pattern: "POST /oauth/{provider}/callback", access: open, whenOff: true, handle: a.handleOAuthCallback, limits: slices.Concat(atFirst, wrongMailCodes), errors: callback},
		{pattern: "POST /oauth/{provider}/id-token", access: keyed, whenOff: true, handle: a.handleIDToken,
			limits: slices.Concat(atFirst, wrongMailCodes, []string{"OAuthPerIP"}),
			errors: slices.Concat(firstSignIn, atProvider, []Code{CodeInvalidToken, CodeInvalidCode, CodeEmailNotVerified, CodeAccountExists, CodeValidationFailed})},

		{pattern: "POST /magic-link/send", access: keyed, whenOff: true, captcha: true, handle: a.handleMagicLinkSend, done: doneSent,
			limits: mails, errors: []Code{CodeRedirectNotAllowed, CodeMethodDisabled, CodeValidationFailed}},
		{pattern: "GET /magic-link/verify", access: open, whenOff: true, handle: a.handleMagicLink,
			limits: first,
			errors: slices.Concat(firstSignIn, maybeWithin, []Code{CodeInvalidToken, CodeBadCodeVerifier})},
		{pattern: "POST /magic-link/verify", access: keyed, whenOff: true, handle: a.handleMagicLinkPost, form: a.handleMagicLinkForm,
			limits: slices.Concat(first, wrongMailCodes, []string{"FactorPerUser"}),
			errors: slices.Concat(firstSignIn, maybeWithin, []Code{
				CodeInvalidToken, CodeInvalidCode, CodeBadCodeVerifier, CodeInvalidTOTPCode, CodeMFANotPending, CodeMFAAlreadyEnabled, CodeTargetStronger, CodeValidationFailed})},
		{pattern: "POST /otp/send", access: keyed, whenOff: true, captcha: true, handle: a.handleOTPSend, done: doneSent,
			limits: texts, errors: []Code{CodeMethodDisabled, CodeValidationFailed}},
		{pattern: "POST /otp/verify", access: keyed, whenOff: true, handle: a.handleOTPVerify, done: doneSignedIn,
			limits: slices.Concat(wrongCodes, first, wrongFactors),
			errors: plus(firstSignIn, CodeInvalidCode, CodeBadToken, CodeSessionEnded, CodeInsufficientAAL, CodeUserAlreadyExists, CodeEmailNotVerified, CodeTargetStronger, CodeInvalidTOTPCode, CodeValidationFailed)},
		{pattern: "POST /forgot-password", access: keyed, captcha: true, handle: a.handleForgotPassword, done: doneSent,
			limits: mails, errors: []Code{CodeRedirectNotAllowed, CodeMethodDisabled, CodeValidationFailed}},
		{pattern: "GET /reset-password", access: open, handle: a.handleResetPage, errors: []Code{CodeInvalidToken}},
		{pattern: "POST /reset-password", access: keyed, handle: a.handleResetPassword, form: a.handleResetPost,
			errors: []Code{CodeInvalidToken, CodeEmailNotVerified, CodeMethodDisabled, CodeWeakPassword, CodeValidationFailed, CodeOverloaded}},
		{pattern: "GET /verify-email", access: open, handle: a.handleVerifyEmail, errors: []Code{CodeInvalidToken}},
		{pattern: "POST /verify-email", access: keyed, handle: a.handlePostVerifyEmail, form: a.handleVerifyEmailPost,
			limits: slices.Concat(mails, wrongCodes, wrongPasswords, []string{"CodesPerIP"}),
			errors: slices.Concat(maybeWithin, []Code{
				CodeMissingToken, CodeInvalidToken, CodeInvalidCode, CodeInvalidCredentials, CodeInsufficientAAL, CodeUserAlreadyExists, CodeTargetStronger, CodeUserBanned,
				CodeMethodDisabled, CodeValidationFailed, CodeOverloaded})},

		{pattern: "GET /invitations/accept", access: open, handle: a.handleInvitation, errors: []Code{CodeInvalidToken}},
		{pattern: "POST /invitations/accept", access: keyed, handle: a.handleAcceptInvitation, form: a.handleInvitationForm,
			limits: first,
			errors: slices.Concat(firstSignIn, maybeWithin, []Code{CodeInvalidToken, CodeAccountExists, CodeInvalidTOTPCode, CodeWeakPassword, CodeValidationFailed, CodeOverloaded})},

		{pattern: "GET /secure-account", access: open, handle: a.handleSecurePage, errors: []Code{CodeInvalidToken, CodeTargetStronger}},
		{pattern: "POST /secure-account", access: keyed, handle: a.handleSecureAccount, form: a.handleSecurePost,
			errors: []Code{CodeInvalidToken, CodeUserAlreadyExists, CodeTargetStronger, CodeValidationFailed}},

		{pattern: "POST /passkeys/sign-in/begin", access: keyed, whenOff: true, handle: a.handleBeginPasskeySignIn, errors: []Code{CodeMethodDisabled}},
		{pattern: "POST /passkeys/sign-in/finish", access: keyed, whenOff: true, handle: a.handleFinishPasskeySignIn,
			limits: []string{"CodesPerIP"},
			errors: plus(signIn, CodeInvalidPasskey, CodePasskeyRemoved, CodeMethodDisabled, CodeValidationFailed)},

		{pattern: "GET /me", access: signedIn, act: true, whenOff: true, handle: a.handleMe},
		{pattern: "PATCH /me", access: signedIn, handle: a.handleUpdateMe,
			limits: slices.Concat(texts, []string{"ProfileChangesPerUser"}), errors: []Code{CodeReauthNeeded, CodeInsufficientAAL, CodeEmailNotVerified, CodeTargetStronger, CodeMethodDisabled, CodeValidationFailed}},
		{pattern: "DELETE /me", access: signedIn, handle: a.handleDeleteMe, errors: []Code{CodeReauthNeeded, CodeLastOwner}},
		{pattern: "POST /me/password", access: signedIn, handle: a.handleChangePassword,
			limits: slices.Concat(wrongPasswords, []string{"PasswordChangesPerUser"}),
			errors: []Code{
				CodeInvalidCredentials, CodeReauthNeeded, CodeMethodDisabled, CodeWeakPassword, CodeSamePassword,
				CodeValidationFailed, CodeOverloaded}},
		{pattern: "POST /me/confirm", access: signedIn, whenOff: true, handle: a.handleConfirm,
			limits: slices.Concat(wrongPasswords, []string{"FactorPerUser", "CodesPerIP"}),
			errors: []Code{
				CodeInvalidCredentials, CodeInvalidTOTPCode, CodeInvalidPasskey, CodePasskeyRemoved, CodeMFANotEnabled, CodeMFARequired, CodeMFAEnrollmentRequired,
				CodeMethodDisabled, CodeValidationFailed, CodeOverloaded}},
		{pattern: "GET /me/export", access: signedIn, handle: a.handleExport, errors: []Code{CodeReauthNeeded}},
		{pattern: "POST /me/identities/{provider}", access: signedIn, handle: a.handleLinkIdentity,
			limits: []string{"OAuthPerIP"},
			errors: plus(atProvider, CodeReauthNeeded, CodeEmailNotVerified, CodeRedirectNotAllowed, CodeMethodDisabled, CodeValidationFailed)},
		{pattern: "DELETE /me/identities/{provider}", access: signedIn, handle: a.handleUnlinkIdentity,
			errors: []Code{CodeReauthNeeded, CodeUnknownProvider, CodeLastSignInMethod}},
		{pattern: "GET /me/passkeys", access: signedIn, handle: a.handlePasskeys, errors: []Code{CodeMethodDisabled}},
		{pattern: "POST /me/passkeys/begin", access: enrolling, whenOff: true, handle: a.handleBeginPasskey, errors: addPasskey},
		{pattern: "POST /me/passkeys", access: enrolling, whenOff: true, handle: a.handleAddPasskey,
			limits: []string{"PasskeysPerUser"},
			errors: plus(addPasskey, CodeInvalidPasskey, CodePasskeyAlreadyExists, CodeMFANotPending, CodeValidationFailed)},
		{pattern: "PATCH /me/passkeys/{id}", access: signedIn, handle: a.handleChangePasskey,
			limits: []string{"ProfileChangesPerUser"}, errors: plus(changePasskey, CodePreconditionFailed, CodeValidationFailed)},
		{pattern: "DELETE /me/passkeys/{id}", access: signedIn, handle: a.handleRemovePasskey, errors: plus(changePasskey, CodeLastSignInMethod)},
		{pattern: "GET /sessions", access: signedIn, act: true, handle: a.handleSessions},
		{pattern: "DELETE /sessions", access: signedIn, handle: a.handleEndOtherSessions},
		{pattern: "DELETE /sessions/{id}", access: signedIn, handle: a.handleEndSession, errors: []Code{CodeSessionNotFound}},

		{pattern: "POST /2fa/setup-totp", access: enrolling, whenOff: true, handle: a.handleSetupTOTP,
			errors: []Code{CodeMethodDisabled, CodeReauthNeeded, CodeInsufficientAAL, CodeMFAAlreadyEnabled, CodeTargetStronger}},
		{pattern: "POST /2fa/verify-and-enable", access: enrolling, whenOff: true, handle: a.handleEnableTOTP,
			limits: []string{"FactorPerUser", "CodesPerIP"},
			errors: []Code{
				CodeMethodDisabled, CodeReauthNeeded, CodeInsufficientAAL, CodeMFAAlreadyEnabled, CodeTargetStronger, CodeMFANotPending, CodeInvalidTOTPCode, CodeValidationFailed}},
		{pattern: "POST /2fa/passkey", access: keyed, whenOff: true, handle: a.handleBeginPasskeyFactor,
			errors: []Code{CodeInvalidToken, CodeMissingToken, CodeBadToken, CodeSessionEnded, CodeUserBanned, CodeMFANotEnabled, CodeMethodDisabled}},
		{pattern: "POST /2fa/verify", access: keyed, whenOff: true, handle: a.handleVerifyMFA, done: doneSignedIn,
			limits: wrongFactors,
			errors: []Code{
				CodeInvalidToken, CodeMissingToken, CodeBadToken, CodeSessionEnded, CodeUserBanned, CodeMFANotEnabled,
				CodeInvalidTOTPCode, CodeInvalidPasskey, CodePasskeyRemoved, CodeMethodDisabled, CodeValidationFailed}},
		{pattern: "POST /2fa/disable", access: signedIn, handle: a.handleDisableTOTP,
			limits: wrongFactors,
			errors: []Code{CodeReauthNeeded, CodeMFAEnforced, CodeMFANotEnabled, CodeInvalidTOTPCode}},
		{pattern: "POST /2fa/recovery-codes", access: signedIn, handle: a.handleRecoveryCodes,
			errors: []Code{CodeInsufficientAAL, CodeReauthNeeded, CodeMFANotEnabled}},

		{pattern: "GET /pages/passkey.js", access: open, whenOff: true, handle: a.handlePasskeyScript},
		{pattern: "GET /settings", access: keyed, handle: a.handleSettings},
		{pattern: "GET /.well-known/jwks.json", access: open, handle: a.handleJWKS},
		{pattern: "GET /.well-known/openid-configuration", access: open, handle: a.handleDiscovery},
		{pattern: "GET /openapi.json", access: open, handle: a.handleOpenAPI()},
		{pattern: "GET /healthz", access: open, whenOff: true, handle: a.handleHealth},
	}
}

// plus returns list and more in a new array.
func plus(list []Code, more ...Code) []Code { return slices.Concat(list, more) }

// The handwritten parts of the OpenAPI document. The rest follows from the route table.
// Package openapi describes the files.
var (
	//go:embed openapi/schemas.json
	openAPISchemas []byte
	//go:embed openapi/prose.json
	openAPIProse []byte
)

// document writes the OpenAPI document of the route table.
func (a *Auth) document() ([]byte, error) {
	part := openapi.Part{Schemas: openAPISchemas, Prose: openAPIProse, Routes: described(a.routes())}
	return openapi.Build(openapi.Envelope{
		Server:  cmp.Or(a.cfg.prefix, "/"),
		Always:  documented(nil, CodeNotFound, CodeMethodNotAllowed, CodeInternal, CodeUnavailable),
		Body:    documented(nil, CodeBadJSON, CodeBodyTooLarge, CodeUnsupportedMediaType),
		Limited: documented(nil, CodeRateLimited),
	}, append([]openapi.Part{part}, a.documentParts.all()...)...)
}

// documentParts are the parts of the document that Authmount's other packages add.
type documentParts struct {
	mu    sync.Mutex
	parts []openapi.Part
}

func (r *documentParts) add(p openapi.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, p)
}

func (r *documentParts) all() []openapi.Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.parts)
}

func described(rows []route) []openapi.Route {
	list := make([]openapi.Route, 0, len(rows))
	for _, rt := range rows {
		list = append(list, rt.described())
	}
	return list
}

// described returns the row for the document, with the errors of its access.
func (rt route) described() openapi.Route {
	r := openapi.Route{Pattern: rt.pattern, Limits: rt.limits, Forms: rt.done != ""}
	switch rt.access {
	case open:
	case elsewhere:
		r.Security = [][]string{{"secret-key"}, {}} // the application may ask for other credentials
		r.Errors = documented(nil, CodeInvalidAPIKey, CodeMissingToken, CodeBadToken, CodeSessionEnded, CodeUserBanned)
	case keyed:
		r.Security = [][]string{{"apikey"}, {"x-api-key"}, {}} // a server without keys asks for none
		r.Errors = documented(nil, CodeInvalidAPIKey)
	case signedIn, enrolling, operating:
		r.Security = [][]string{{"bearer", "apikey"}, {"bearer", "x-api-key"}, {"bearer"}}
		if rt.access == operating {
			r.Security = append(r.Security, []string{"secret-key"})
		}
		r.Errors = documented(nil, CodeInvalidAPIKey, CodeMissingToken, CodeBadToken, CodeTokenStale, CodeSessionEnded, CodeUserBanned)
	}
	if rt.form != nil || rt.takesSecretKeys() || (rt.access != open && !strings.HasPrefix(rt.pattern, http.MethodGet)) { // any of them may use cookies
		r.Errors = append(r.Errors, documented(nil, CodeCrossSiteRequest)...)
	}
	if rt.done != "" {
		r.Errors = append(r.Errors, documented(nil, CodeRedirectNotAllowed)...)
	}
	if !rt.act || rt.access == keyed {
		r.Errors = append(r.Errors, documented(nil, CodeImpersonationForbidden)...)
	}
	r.Errors = append(r.Errors, documented(rt.statuses, rt.errors...)...)
	if rt.noKeys {
		r.Security = slices.DeleteFunc(r.Security, func(schemes []string) bool { return slices.Contains(schemes, "secret-key") })
	}
	return r
}

// documented returns codes with their statuses: those in differ, else those in
// errorTable.
func documented(differ map[Code]int, codes ...Code) []openapi.Error {
	var list []openapi.Error
	for _, c := range codes {
		status, ok := differ[c]
		if !ok {
			status = errorTable[c].Status
		}
		list = append(list, openapi.Error{Code: string(c), Status: status})
	}
	return list
}

// handleOpenAPI returns the handler of the document, which is written at the first
// request.
func (a *Auth) handleOpenAPI() func(http.ResponseWriter, *http.Request) error {
	written := sync.OnceValues(a.document)
	return func(w http.ResponseWriter, _ *http.Request) error {
		doc, err := written()
		if err != nil {
			return fail(CodeInternal, fmt.Errorf("write the document: %w", err))
		}
		return writeDocument(w, doc)
	}
}
