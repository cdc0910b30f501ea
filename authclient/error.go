package authclient

import (
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

// The codes of what the server did not say itself. All others are package auth's, such
// as [auth.CodeInvalidCredentials].
const (
	CodeNetwork     auth.Code = "network_error"       // no answer was to be had; the cause is in the chain
	CodeBadResponse auth.Code = "bad_response"        // an answer that is none of Authmount's: a proxy, or another URL
	CodeNoSession             = auth.CodeMissingToken // nobody is signed in; a server says the same of a request without a token
	CodeUsed        auth.Code = "flow_used"           // a Flow is completed once
	CodeForeignURL  auth.Code = "foreign_origin"      // a redirect that did not come from this flow
)

// Error is what the server refused, or what kept it from being asked. It can be
// compared by code: errors.Is(err, auth.CodeInvalidCredentials). It holds no secrets
// that formatting it would show.
type Error struct {
	Code       auth.Code
	Status     int    // of HTTP; 0: there was no answer
	Message    string // for people, as the server says it
	RequestID  string // for the server's log
	RetryAfter time.Duration
	Fields     map[string]string // validation_failed: what is wrong with which field
	Reasons    []string          // weak_password: "length", "too_long", "breached", "common", "similar"
	Permission string            // missing_permission
	Role       string            // missing_permission, where a role was asked for in place of one
	Factors    []string          // mfa_required: what is accepted

	mfa   pending
	cause error
}

// Error names code, fields and cause. It quotes nothing that was sent.
func (e *Error) Error() string {
	s := "authclient: " + string(e.Code)
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		s += fmt.Sprintf(": %s %s", field, e.Fields[field])
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

// Temporary tells whether the same may succeed later: no answer, 408, 429 and 5xx. It
// says nothing against a session.
func (e *Error) Temporary() bool {
	return e.Status == 0 && e.Code == CodeNetwork || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status >= 500 || e.Code == CodeBadResponse
}

// LogValue logs what Error says, and the request's id.
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(slog.String("code", string(e.Code)), slog.Int("status", e.Status), slog.String("request_id", e.RequestID), slog.String("error", e.Error()))
}

// GoString keeps %#v from showing what the error carries along.
func (e *Error) GoString() string { return e.Error() }

// endsSession tells whether an answer to a refresh says that the session is over.
// Nothing else does: an outage is no sign-out.
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

// noAnswer is the error of a request that got none. The HTTP client's own quotes the
// URL, whose query may be a secret.
func noAnswer(err error) *Error {
	e := &Error{Code: CodeNetwork, Message: "The server did not answer.", cause: outbound.Cause(err)}
	if errors.Is(err, context.Canceled) {
		e.cause = context.Canceled
	}
	return e
}

// refused reads the error that an answer is. One that is not the wire's, such as a
// proxy's page, keeps its status only.
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
		e.Code, e.Message = CodeBadResponse, "The answer is none of this service's."
		e.cause = fmt.Errorf("status %d", res.StatusCode)
		return e
	}
	e.Code, e.Message, e.Fields, e.Reasons = w.Code, w.Message, w.Details.Fields, w.Details.Reasons
	e.Permission, e.Role, e.Factors = w.Details.Permission, w.Details.Role, w.Factors
	if w.RequestID != "" {
		e.RequestID = w.RequestID
	}
	if w.MFAToken != "" {
		e.mfa = pending{token: w.MFAToken, enroll: w.Code == auth.CodeMFAEnrollmentRequired, life: time.Duration(w.ExpiresIn) * time.Second}
	}
	return e
}

// retryAfter reads the header's two forms (RFC 9110, section 10.2.3); 0: it says nothing.
func retryAfter(h string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(h); err == nil && n > 0 {
		return min(time.Duration(n)*time.Second, 24*time.Hour)
	}
	if at, err := http.ParseTime(h); err == nil {
		return max(0, min(at.Sub(now), 24*time.Hour))
	}
	return 0
}
