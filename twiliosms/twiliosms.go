// Package twiliosms sends Authmount's text messages through Twilio's REST API.
//
//	auth.WithSMSSender(twiliosms.New("AC…", os.Getenv("TWILIO_AUTH_TOKEN"), "+1…"))
package twiliosms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/authmount/auth"
)

// maxResponse limits the size of a response.
const maxResponse = 64 << 10

// Sender sends text messages. It is safe for concurrent use.
type Sender struct {
	accountSID, authToken, from string
	messagingService            string
	url                         string
	timeout                     time.Duration
	maxAttempts                 int
	client                      *http.Client
	pause                       func(ctx context.Context, d time.Duration) error
}

var _ auth.SMSSender = (*Sender)(nil)

// Option changes a Sender.
type Option func(*Sender)

// WithMessagingService sends through a messaging service instead of a phone number.
func WithMessagingService(sid string) Option { return func(s *Sender) { s.messagingService = sid } }

// WithURL sets the URL of the API; default https://api.twilio.com.
func WithURL(url string) Option { return func(s *Sender) { s.url = strings.TrimSuffix(url, "/") } }

// WithTimeout limits one attempt; default 10 s.
func WithTimeout(d time.Duration) Option { return func(s *Sender) { s.timeout = d } }

// WithAttempts limits the attempts in one Send, after 429 and 5xx; default 3.
func WithAttempts(n int) Option { return func(s *Sender) { s.maxAttempts = n } }

// WithHTTPClient sets the client; the default is a new one.
func WithHTTPClient(c *http.Client) Option { return func(s *Sender) { s.client = c } }

// New returns a Sender for an account that sends from a phone number or sender id. from
// is empty with WithMessagingService. Validate, which auth.New calls, and every Send
// report a missing value.
func New(accountSID, authToken, from string, opts ...Option) *Sender {
	s := &Sender{
		accountSID: accountSID, authToken: authToken, from: from,
		url: "https://api.twilio.com", timeout: 10 * time.Second, maxAttempts: 3, client: &http.Client{}, pause: pause,
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Validate returns an error if a value is missing.
func (s *Sender) Validate() error {
	switch {
	case s.accountSID == "" || s.authToken == "":
		return errors.New("twiliosms: the account SID and the auth token are required")
	case (s.from == "") == (s.messagingService == ""):
		return errors.New("twiliosms: either a sender or WithMessagingService is required")
	}
	return nil
}

// Error is an error response of the API. It never contains the message or the token.
type Error struct {
	Status  int    // HTTP status
	Code    int    // Twilio's error code; 0 if unknown
	Message string // Twilio's error text
}

func (e *Error) Error() string {
	return fmt.Sprintf("twiliosms: status %d, code %d: %s", e.Status, e.Code, e.Message)
}

// temporary reports whether the same request may succeed later.
func (e *Error) temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// Send sends a message through Twilio. After 429 and 5xx it retries a few times, with
// pauses that respect Retry-After. Other error responses are an *Error marked
// auth.Permanent. A lost response is returned as it is, because the message may have been
// sent.
func (s *Sender) Send(ctx context.Context, m auth.Message) error {
	if err := s.Validate(); err != nil {
		return auth.Permanent(err)
	}
	for n := 1; ; n++ {
		wait, err := s.attempt(ctx, m)
		var refused *Error
		switch {
		case errors.As(err, &refused) && !refused.temporary():
			return auth.Permanent(err)
		case refused == nil || n >= s.maxAttempts:
			return err // nil, or a lost response: the message may have been sent, so the caller decides
		}
		if err := s.pause(ctx, max(wait, time.Duration(n)*500*time.Millisecond)); err != nil {
			return err
		}
	}
}

// attempt makes one attempt and returns the pause that the API asks for.
func (s *Sender) attempt(ctx context.Context, m auth.Message) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	form := url.Values{"To": {m.To}, "Body": {m.Text}}
	if s.from != "" {
		form.Set("From", s.from)
	} else {
		form.Set("MessagingServiceSid", s.messagingService)
	}
	endpoint := s.url + "/2010-04-01/Accounts/" + url.PathEscape(s.accountSID) + "/Messages.json"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, auth.Permanent(errors.New("twiliosms: the URL is not valid"))
	}
	req.SetBasicAuth(s.accountSID, s.authToken)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("twiliosms: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return 0, fmt.Errorf("twiliosms: %w", err)
	}
	if res.StatusCode < 300 {
		return 0, nil
	}
	var result struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &result) // a response without JSON is an error, too
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	return time.Duration(min(max(seconds, 0), 30)) * time.Second, &Error{Status: res.StatusCode, Code: result.Code, Message: result.Message}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
