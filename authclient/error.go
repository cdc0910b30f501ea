package authclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/outbound"
)

// The codes of errors that did not come from the server. All other codes are package
// auth's, such as [auth.CodeInvalidCredentials].
const (
	CodeNetwork     auth.Code = "network_error"       // there was no answer; the cause is in the chain
	CodeBadResponse auth.Code = "bad_response"        // the answer is not Authmount's: a proxy, or another URL
	CodeStorage     auth.Code = "storage_failed"      // the TokenStore failed; the cause is in the chain
	CodeNoSession             = auth.CodeMissingToken // no user is signed in; a server also answers this to a request without a token
	CodeUsed        auth.Code = "flow_used"           // the Flow was completed before
	CodeForeignURL  auth.Code = "foreign_origin"      // the redirect does not belong to a flow
)

// Error is an error of the server, or the reason why there is no answer. Compare it by
// code: errors.Is(err, auth.CodeInvalidCredentials). Formatting it shows no secrets.
type Error struct {
	Code       auth.Code
	Status     int    // the HTTP status; 0: there was no answer
	Message    string // the server's message, for people
	RequestID  string // for the server's log
	RetryAfter time.Duration
	Fields     map[string]string // validation_failed: the error of each invalid field
	Reasons    []string          // weak_password: "length", "too_long", "breached", "common", "similar"
	Permission string            // missing_permission
	Role       string            // missing_permission, if a role is required instead
	Factors    []string          // mfa_required: the accepted factors

	mfa   func() pending // nil: none; a function, so that no verb of fmt prints the token
	cause error
}

// Error returns code, fields, missing permission and cause. It quotes nothing of the request.
func (e *Error) Error() string {
	s := "authclient: " + string(e.Code)
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		s += fmt.Sprintf(": %s %s", field, e.Fields[field])
	}
	if missing := cmp.Or(e.Permission, e.Role); missing != "" {
		s += ": " + missing
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the cause, such as context.Canceled, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Is matches the error's Code.
func (e *Error) Is(target error) bool { return target == error(e.Code) }

// Temporary reports whether the same call may succeed later: no answer, a failure of the
// TokenStore, 408, 429 and 5xx. Such an error does not end a session.
func (e *Error) Temporary() bool {
	return e.Status == 0 && (e.Code == CodeNetwork || e.Code == CodeStorage) || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status >= 500 || e.Code == CodeBadResponse
}

// LogValue returns the error's text, code and status, and the request's id.
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(slog.String("code", string(e.Code)), slog.Int("status", e.Status), slog.String("request_id", e.RequestID), slog.String("error", e.Error()))
}

// GoString returns the same as Error, so that %#v does not show unexported fields.
func (e *Error) GoString() string { return e.Error() }

// endsSession reports whether the error of a refresh ends the session. An outage does
// not.
func endsSession(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case auth.CodeInvalidRefreshToken, auth.CodeRefreshTokenReused, auth.CodeSessionEnded:
		return e.Status == http.StatusBadRequest
	case auth.CodeUserBanned:
		return e.Status == http.StatusForbidden
	}
	return false
}

// noAnswer returns the error of a request without an answer. The HTTP client's error
// quotes the URL, and its query may be a secret.
func noAnswer(err error) *Error {
	e := &Error{Code: CodeNetwork, Message: "The server did not answer.", cause: outbound.Cause(err)}
	if errors.Is(err, context.Canceled) {
		e.cause = context.Canceled
	}
	return e
}

// refused reads the error of an answer. If that is not the server's, such as a proxy's
// page, only its status is used.
func refused(res *http.Response) *Error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	var w struct {
		Code      auth.Code `json:"code"`
		Message   string    `json:"message"`
		RequestID string    `json:"request_id"`
		Details   struct {
			Fields     map[string]string `json:"fields"`
			Reasons    []string          `json:"reasons"`
			Permission string            `json:"permission"`
			Role       string            `json:"role"`
		} `json:"details"`
		MFAToken  string   `json:"mfa_token"`
		ExpiresIn int      `json:"expires_in"`
		Factors   []string `json:"factors"`
	}
	e := &Error{Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id"), RetryAfter: retryAfter(res.Header.Get("Retry-After"), time.Now())}
	if json.Unmarshal(body, &w) != nil || w.Code == "" {
		e.Code, e.Message = CodeBadResponse, "The answer does not come from this service."
		e.cause = fmt.Errorf("status %d", res.StatusCode)
		return e
	}
	e.Code, e.Message, e.Fields, e.Reasons = w.Code, w.Message, w.Details.Fields, w.Details.Reasons
	e.Permission, e.Role, e.Factors = w.Details.Permission, w.Details.Role, w.Factors
	if w.RequestID != "" {
		e.RequestID = w.RequestID
	}
	if w.MFAToken != "" {
		p := pending{token: w.MFAToken, enroll: w.Code == auth.CodeMFAEnrollmentRequired, life: time.Duration(w.ExpiresIn) * time.Second}
		e.mfa = func() pending { return p }
	}
	return e
}

// retryAfter reads the header's two forms (RFC 9110, section 10.2.3). It returns 0 if
// there is no valid value.
func retryAfter(h string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(h); err == nil && n > 0 {
		return min(time.Duration(n)*time.Second, 24*time.Hour)
	}
	if at, err := http.ParseTime(h); err == nil {
		return max(0, min(at.Sub(now), 24*time.Hour))
	}
	return 0
}
