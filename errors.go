package auth

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// Code is a stable error code of the wire. A Code is itself an error to compare
// with: errors.Is(err, auth.CodeInvalidCredentials).
type Code string

func (c Code) Error() string { return string(c) }

// The error codes. They are frozen: clients depend on them.
const (
	CodeBadJSON             Code = "bad_json"
	CodeInvalidToken        Code = "invalid_token"
	CodeInvalidCode         Code = "invalid_code"
	CodeBadCodeVerifier     Code = "bad_code_verifier"
	CodeInvalidRefreshToken Code = "invalid_refresh_token"
	CodeRefreshTokenReused  Code = "refresh_token_reused"
	CodeSessionEnded        Code = "session_ended"
	CodeRedirectNotAllowed  Code = "redirect_not_allowed"
	CodeBadOAuthState       Code = "bad_oauth_state"
	CodeOAuthDenied         Code = "oauth_denied"
	CodeInvalidCredentials  Code = "invalid_credentials" //nolint:gosec // a name, not credentials
	CodeMissingToken        Code = "missing_token"
	CodeBadToken            Code = "bad_token"
	CodeTokenStale          Code = "token_stale"
	CodeInvalidAPIKey       Code = "invalid_api_key"
	CodeReauthNeeded        Code = "reauthentication_needed"
	CodeEmailNotVerified    Code = "email_not_verified"
	CodeUserBanned          Code = "user_banned"
	CodeSignupDisabled      Code = "signup_disabled"
	CodeMissingPermission   Code = "missing_permission"
	CodeNotAdmin            Code = "not_admin"
	CodeTargetStronger      Code = "target_stronger"

	CodeImpersonationForbidden Code = "impersonation_forbidden"

	CodeMFARequired       Code = "mfa_required"
	CodeMFAEnforced       Code = "mfa_enforced"
	CodeInsufficientAAL   Code = "insufficient_aal"
	CodeMFAAlreadyEnabled Code = "mfa_already_enabled"
	CodeMFANotEnabled     Code = "mfa_not_enabled"
	CodeMFANotPending     Code = "mfa_not_pending"
	CodeInvalidTOTPCode   Code = "invalid_totp_code"

	CodeInvalidPasskey       Code = "invalid_passkey"
	CodePasskeyRemoved       Code = "passkey_removed"
	CodePasskeyNotFound      Code = "passkey_not_found" //nolint:gosec // a name, not credentials
	CodePasskeyAlreadyExists Code = "passkey_already_exists"

	CodeMFAEnrollmentRequired Code = "mfa_enrollment_required"
	CodeCrossSiteRequest      Code = "cross_site_request"
	CodeMethodDisabled        Code = "method_disabled"
	CodeNotFound              Code = "not_found"
	CodeSessionNotFound       Code = "session_not_found"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeUnknownProvider       Code = "unknown_provider"
	CodeUserAlreadyExists     Code = "user_already_exists"
	CodeAccountExists         Code = "account_exists"
	CodeIdentityAlreadyExists Code = "identity_already_exists"
	CodeLastSignInMethod      Code = "last_sign_in_method"
	CodeLastOwner             Code = "last_owner"
	CodeUserNotFound          Code = "user_not_found"
	CodeRoleNotFound          Code = "role_not_found"
	CodeRoleInUse             Code = "role_in_use"
	CodePreconditionFailed    Code = "precondition_failed"
	CodeIdempotencyReplayed   Code = "idempotency_replayed"
	CodeQueryTooBroad         Code = "query_too_broad"
	CodeBodyTooLarge          Code = "body_too_large"
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
	CodeValidationFailed      Code = "validation_failed"
	CodeWeakPassword          Code = "weak_password"
	CodeSamePassword          Code = "same_password"
	CodeRateLimited           Code = "rate_limited"
	CodeInternal              Code = "internal"
	CodeProviderError         Code = "provider_error"
	CodeUnavailable           Code = "unavailable"
	CodeOverloaded            Code = "overloaded"

	// CodeRevocationsUnavailable is the error of a server that follows no feed of
	// revocations, and of a verifier that requires one.
	CodeRevocationsUnavailable Code = "revocations_unavailable"
)

// errorTable defines the status and message of every code.
var errorTable = map[Code]struct {
	Status  int
	Message string
}{
	CodeBadJSON:              {http.StatusBadRequest, "The request body is not the expected JSON."},
	CodeInvalidToken:         {http.StatusBadRequest, "This link or token is not valid any more. Ask for a new one, or start again."},
	CodeInvalidCode:          {http.StatusBadRequest, "The code is not right, or not valid any more. Check it, or ask for a new one."},
	CodeBadCodeVerifier:      {http.StatusBadRequest, "The code verifier does not match the code challenge."},
	CodeInvalidRefreshToken:  {http.StatusBadRequest, "The refresh token is not valid."},
	CodeRefreshTokenReused:   {http.StatusBadRequest, "The refresh token was used before. For safety the session has ended: sign in again."},
	CodeSessionEnded:         {http.StatusUnauthorized, "The session has ended. Sign in again."},
	CodeRedirectNotAllowed:   {http.StatusBadRequest, "The redirect address is not on the allow-list."},
	CodeBadOAuthState:        {http.StatusBadRequest, "This sign-in is not valid any more, or began in another browser. Start again."},
	CodeOAuthDenied:          {http.StatusBadRequest, "The sign-in was cancelled."},
	CodeInvalidCredentials:   {http.StatusUnauthorized, "The credentials are not right."},
	CodeMissingToken:         {http.StatusUnauthorized, "This needs an access token."},
	CodeBadToken:             {http.StatusUnauthorized, "The access token is not valid."},
	CodeTokenStale:           {http.StatusUnauthorized, "The permissions of this account have changed. Refresh the session and try again."},
	CodeInvalidAPIKey:        {http.StatusUnauthorized, "This needs a valid API key."},
	CodeReauthNeeded:         {http.StatusForbidden, "Sign in again to do this."},
	CodeEmailNotVerified:     {http.StatusForbidden, "Confirm your e-mail address or phone number first, with the link or code that was sent to it."},
	CodeUserBanned:           {http.StatusForbidden, "This account is suspended."},
	CodeSignupDisabled:       {http.StatusForbidden, "Signing up is switched off."},
	CodeMFARequired:          {http.StatusForbidden, "Enter the code of your second factor."},
	CodeMFAEnforced:          {http.StatusForbidden, "A second factor is required here and cannot be switched off."},
	CodeInsufficientAAL:      {http.StatusForbidden, "This needs your second factor."},
	CodeMFAAlreadyEnabled:    {http.StatusConflict, "A second factor is switched on already."},
	CodeMFANotEnabled:        {http.StatusConflict, "No second factor is switched on."},
	CodeMFANotPending:        {http.StatusConflict, "Start setting up a second factor first."},
	CodeInvalidPasskey:       {http.StatusUnprocessableEntity, "This passkey did not work. Try again, or use another way."},
	CodePasskeyRemoved:       {http.StatusUnprocessableEntity, "This passkey was removed from its account. Delete it on your device, and use another way."},
	CodePasskeyNotFound:      {http.StatusNotFound, "There is no such passkey."},
	CodePasskeyAlreadyExists: {http.StatusConflict, "This passkey is registered already."},
	CodeInvalidTOTPCode:      {http.StatusUnprocessableEntity, "The code of your authenticator app is not right, or was used before."},

	CodeCrossSiteRequest:      {http.StatusForbidden, "This request comes from another site. Send it from a page of this one, or with a bearer token in place of cookies."},
	CodeMFAEnrollmentRequired: {http.StatusForbidden, "Set up a second factor to continue."},
	CodeIdentityAlreadyExists: {http.StatusConflict, "This provider is linked already, or the identity belongs to another account."},

	CodeMissingPermission:      {http.StatusForbidden, "You do not have the permission for this."},
	CodeNotAdmin:               {http.StatusForbidden, "This is for administrators."},
	CodeTargetStronger:         {http.StatusForbidden, "This account has permissions that you do not have."},
	CodeImpersonationForbidden: {http.StatusForbidden, "This cannot be done while you act as another user."},

	CodeUserNotFound:         {http.StatusNotFound, "There is no such account."},
	CodeRoleNotFound:         {http.StatusNotFound, "There is no such role."},
	CodeRoleInUse:            {http.StatusConflict, "This role is in use. Take it from its users first."},
	CodePreconditionFailed:   {http.StatusPreconditionFailed, "This has changed in the meantime. Load it again."},
	CodeIdempotencyReplayed:  {http.StatusConflict, "This request has already succeeded. Its answer was a secret, which is not stored."},
	CodeMethodDisabled:       {http.StatusForbidden, "This sign-in method is switched off."},
	CodeNotFound:             {http.StatusNotFound, "There is nothing here."},
	CodeSessionNotFound:      {http.StatusNotFound, "There is no such session."},
	CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "This path does not support the method."},
	CodeUnknownProvider:      {http.StatusNotFound, "There is no such provider."},
	CodeUserAlreadyExists:    {http.StatusConflict, "An account with this address or number exists already."},
	CodeAccountExists:        {http.StatusConflict, "An account with this address exists already. Sign in to it as before, then link the provider."},
	CodeLastSignInMethod:     {http.StatusConflict, "This is the last sign-in method. Add another one first."},
	CodeLastOwner:            {http.StatusConflict, "At least one owner must remain. Make another user an owner first."},
	CodeBodyTooLarge:         {http.StatusRequestEntityTooLarge, "The request body is too large."},
	CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "Send the body as application/json."},
	CodeQueryTooBroad:        {http.StatusUnprocessableEntity, "This query would read too much. Narrow it down."},
	CodeValidationFailed:     {http.StatusUnprocessableEntity, "Some of the values are not right."},
	CodeWeakPassword:         {http.StatusUnprocessableEntity, "Choose a stronger password."},
	CodeSamePassword:         {http.StatusUnprocessableEntity, "The new password is the same as the old one."},
	CodeRateLimited:          {http.StatusTooManyRequests, "Too many attempts. Wait a little and try again."},
	CodeInternal:             {http.StatusInternalServerError, "Something went wrong on our side."},
	CodeProviderError:        {http.StatusBadGateway, "The provider did not answer as it should. Try again."},
	CodeUnavailable:          {http.StatusServiceUnavailable, "The service is not available right now. Try again soon."},
	CodeOverloaded:           {http.StatusServiceUnavailable, "The service is busy. Try again soon."},

	CodeRevocationsUnavailable: {http.StatusServiceUnavailable, "It is not known at the moment whether sessions were revoked. Try again soon."},
}

// Error is a failed operation, as far as the caller may know. Its exported fields
// go over the wire. The cause is for errors.Is, errors.As and the log,
// and is never serialised.
type Error struct {
	Code       Code
	Status     int               // HTTP status
	Message    string            // for people
	Fields     map[string]string // validation_failed: the problem of each field
	Reasons    []string          // weak_password: "length", "too_long", "breached", "common", "similar"
	RetryAfter time.Duration     // rate_limited, unavailable, overloaded
	Permission string            // missing_permission, insufficient_aal: the permission, if one was requested by name
	Role       string            // missing_permission, insufficient_aal: the role, if one was requested instead of a permission
	MFAToken   string            // mfa_required, mfa_enrollment_required: continues the sign-in; a secret
	Factors    []string          // mfa_required: the accepted kinds
	ExpiresIn  int               // of MFAToken, in seconds
	signUp     string            // email_not_verified, of an identity: the id of the account's sign-up
	cause      error
}

func (e *Error) Error() string {
	s := "auth: " + string(e.Code)
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		s += fmt.Sprintf(": %s %s", field, e.Fields[field])
	}
	if e.Message != errorTable[e.Code].Message { // the caller's own, which says more
		s += ": " + e.Message
	}
	if e.cause != nil {
		s += fmt.Sprintf(": %v", e.cause)
	}
	return s
}

// Unwrap returns the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is matches the error's Code.
func (e *Error) Is(target error) bool { return target == error(e.Code) }

// Reject returns an error with one of the Code constants and a message of the
// caller's own, for hooks that refuse an operation, requirements and Profile
// functions. An empty message uses the code's own. Codes are frozen: any other code
// becomes CodeInternal, with status 500.
func Reject(c Code, message string) *Error {
	e := fail(c, nil)
	if message != "" {
		e.Message = message
	}
	return e
}

// fail returns the error for a code; cause may be nil.
func fail(c Code, cause error) *Error {
	row, ok := errorTable[c]
	if !ok {
		row, cause, c = errorTable[CodeInternal], errors.Join(fmt.Errorf("unknown code %q: auth.Reject takes one of the Code constants", string(c)), cause), CodeInternal
	}
	return &Error{Code: c, Status: row.Status, Message: row.Message, cause: cause}
}

// failStatus is fail for codes with a status that depends on the endpoint.
func failStatus(c Code, status int, cause error) *Error {
	e := fail(c, cause)
	e.Status = status
	return e
}

// invalid is validation_failed for one field.
func invalid(field, problem string) *Error {
	e := fail(CodeValidationFailed, nil)
	e.Fields = map[string]string{field: problem}
	return e
}

func weakPassword(reasons []string) *Error {
	e := fail(CodeWeakPassword, nil)
	e.Reasons = reasons
	return e
}

func retryAfter(c Code, d time.Duration, cause error) *Error {
	e := fail(c, cause)
	e.RetryAfter = d
	return e
}

// storeFailed converts an error of the store into the error for callers. An *Error
// passes unchanged, a failed condition gets its code, any other error is an outage.
func storeFailed(err error) error {
	var (
		e   *Error
		bad *store.InvalidError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return err
	case errors.As(err, &bad):
		return invalid(bad.Field, bad.Problem)
	case errors.Is(err, store.ErrBanned):
		return fail(CodeUserBanned, err)
	case errors.Is(err, store.ErrSessionEnded): // the session of the change's authority
		return fail(CodeSessionEnded, err)
	case errors.Is(err, store.ErrLastOwner):
		return fail(CodeLastOwner, err)
	case errors.Is(err, store.ErrOwned):
		e := fail(CodeRoleInUse, err)
		e.Message = "This service already has, or had, an owner. Ask an owner for the role."
		return e
	case errors.Is(err, store.ErrTooBroad):
		return fail(CodeQueryTooBroad, err)
	case errors.Is(err, store.ErrInvalidChange):
		return fail(CodeInternal, err)
	}
	return retryAfter(CodeUnavailable, time.Second, err)
}

// hookRefused keeps a hook's typed refusal and hides any other error.
func hookRefused(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return fail(CodeInternal, err)
}

// reason returns the public reason of a failure: a code, or the text of a message
// sender's error.
func reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return err.Error()
}

// goneOr returns the code gone if err is ErrNotFound, and the error of storeFailed
// otherwise.
func goneOr(gone Code, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fail(gone, err)
	}
	return storeFailed(err)
}
