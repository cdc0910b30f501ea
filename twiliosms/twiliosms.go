// Package twiliosms sends Authmount's text messages by Twilio's REST API.
//
//	auth.WithSMSSender(twiliosms.New(twiliosms.Options{
//		AccountSID: "AC…", AuthToken: os.Getenv("TWILIO_AUTH_TOKEN"), From: "+1…",
//	}))
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

// Options are the account and the sender.
type Options struct {
	AccountSID          string
	AuthToken           string
	From                string        // number or sender id; or MessagingServiceSID
	MessagingServiceSID string        //
	URL                 string        // default https://api.twilio.com
	Timeout             time.Duration // of one try; default 10 s
	Tries               int           // within one Send, on 429 and 5xx; default 3
	HTTP                *http.Client  // default: one of its own
}

// maxResponse bounds what is read of an answer.
const maxResponse = 64 << 10

// Sender sends text messages. It is safe for concurrent use.
type Sender struct {
	o     Options
	pause func(ctx context.Context, d time.Duration) error
}

var _ auth.SMSSender = (*Sender)(nil)

// New makes a Sender. Options that are incomplete are reported by Validate,
// which auth.New asks, and by every Send.
func New(o Options) *Sender {
	if o.URL == "" {
		o.URL = "https://api.twilio.com"
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Tries <= 0 {
		o.Tries = 3
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	return &Sender{o: o, pause: pause}
}

// Validate tells what is missing, if anything.
func (s *Sender) Validate() error {
	switch {
	case s.o.AccountSID == "" || s.o.AuthToken == "":
		return errors.New("twiliosms: AccountSID and AuthToken are needed")
	case (s.o.From == "") == (s.o.MessagingServiceSID == ""):
		return errors.New("twiliosms: either From or MessagingServiceSID is needed")
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
		case err == nil:
			return nil
		case errors.As(err, &refused) && !refused.temporary():
			return auth.Permanent(err)
		case refused == nil || try >= s.o.Tries:
			return err // an answer that got lost may have been a yes: the caller decides
		}
		if err := s.pause(ctx, max(wait, time.Duration(try)*500*time.Millisecond)); err != nil {
			return err
		}
	}
}

// try sends once, and answers how long the API asks to wait.
func (s *Sender) try(ctx context.Context, m auth.Message) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	form := url.Values{"To": {m.To}, "Body": {m.Text}}
	if s.o.From != "" {
		form.Set("From", s.o.From)
	} else {
		form.Set("MessagingServiceSid", s.o.MessagingServiceSID)
	}
	endpoint := s.o.URL + "/2010-04-01/Accounts/" + url.PathEscape(s.o.AccountSID) + "/Messages.json"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, auth.Permanent(errors.New("twiliosms: the URL is not valid"))
	}
	req.SetBasicAuth(s.o.AccountSID, s.o.AuthToken)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := s.o.HTTP.Do(req)
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
