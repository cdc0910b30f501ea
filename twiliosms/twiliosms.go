// Package twiliosms sends Authmount's text messages by Twilio's REST API.
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

// maxResponse bounds what is read of an answer.
const maxResponse = 64 << 10

// Sender sends text messages. It is safe for concurrent use.
type Sender struct {
	accountSID, authToken, from string
	messagingService            string
	url                         string
	timeout                     time.Duration
	tries                       int
	client                      *http.Client
	pause                       func(ctx context.Context, d time.Duration) error
}

var _ auth.SMSSender = (*Sender)(nil)

// Option changes a Sender.
type Option func(*Sender)

// WithMessagingService sends by a messaging service, in place of a number.
func WithMessagingService(sid string) Option { return func(s *Sender) { s.messagingService = sid } }

// WithURL sets where the API is; default https://api.twilio.com.
func WithURL(url string) Option { return func(s *Sender) { s.url = strings.TrimSuffix(url, "/") } }

// WithTimeout bounds one try; default 10 s.
func WithTimeout(d time.Duration) Option { return func(s *Sender) { s.timeout = d } }

// WithTries bounds the tries within one Send, on 429 and 5xx; default 3.
func WithTries(n int) Option { return func(s *Sender) { s.tries = n } }

// WithHTTPClient sets the client; default one of its own.
func WithHTTPClient(c *http.Client) Option { return func(s *Sender) { s.client = c } }

// New makes a Sender for an account that sends from a number or sender id; from is
// empty with WithMessagingService. What is incomplete is reported by Validate,
// which auth.New asks, and by every Send.
func New(accountSID, authToken, from string, opts ...Option) *Sender {
	s := &Sender{
		accountSID: accountSID, authToken: authToken, from: from,
		url: "https://api.twilio.com", timeout: 10 * time.Second, tries: 3, client: &http.Client{}, pause: pause,
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Validate tells what is missing, if anything.
func (s *Sender) Validate() error {
	switch {
	case s.accountSID == "" || s.authToken == "":
		return errors.New("twiliosms: the account SID and the auth token are needed")
	case (s.from == "") == (s.messagingService == ""):
		return errors.New("twiliosms: either a sender or WithMessagingService is needed")
	}
	return nil
}

// Error is a refusal by the API. Its text never holds the message or the token.
type Error struct {
	Status  int    // HTTP status
	Code    int    // Twilio's error code; 0 if unknown
	Message string // Twilio's words
}

func (e *Error) Error() string {
	return fmt.Sprintf("twiliosms: status %d, code %d: %s", e.Status, e.Code, e.Message)
}

// temporary tells whether the same request may succeed later.
func (e *Error) temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// Send hands a message to Twilio. 429 and 5xx are tried again a few times, with
// pauses that respect Retry-After. Other refusals are an *Error marked
// auth.Permanent.
func (s *Sender) Send(ctx context.Context, m auth.Message) error {
	if err := s.Validate(); err != nil {
		return auth.Permanent(err)
	}
	for try := 1; ; try++ {
		wait, err := s.try(ctx, m)
		var refused *Error
		switch {
		case errors.As(err, &refused) && !refused.temporary():
			return auth.Permanent(err)
		case refused == nil || try >= s.tries:
			return err // nil, or an answer that got lost, which may have been a yes: the caller decides
		}
		if err := s.pause(ctx, max(wait, time.Duration(try)*500*time.Millisecond)); err != nil {
			return err
		}
	}
}

// try sends once, and returns how long the API asks to wait.
func (s *Sender) try(ctx context.Context, m auth.Message) (time.Duration, error) {
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
	var said struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &said) // an answer without JSON is an error all the same
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	return time.Duration(min(max(seconds, 0), 30)) * time.Second, &Error{Status: res.StatusCode, Code: said.Code, Message: said.Message}
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
