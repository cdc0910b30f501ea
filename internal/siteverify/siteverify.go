// Package siteverify asks a captcha service whether a token is good. The services
// agree on how: a form with the secret, the token and the client's address.
package siteverify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/authmount/auth/internal/outbound"
)

// Service is a captcha service. It is safe for concurrent use once it is set up.
type Service struct {
	Name     string // begins every error
	Refused  error  // within the error that says that a token is not good
	URL      string
	Client   *http.Client
	Fields   url.Values // what the form has besides: the secret, a site key
	Hostname string     // if set: the widget has to have been shown on it
}

// mistakes are what the service says of whoever runs this, not of the token.
func mistakes() []string {
	return []string{"missing-input-secret", "invalid-input-secret", "bad-request", "internal-error", "sitekey-secret-mismatch", "not-using-dummy-passcode"}
}

// Verify asks. An error that is not Service.Refused means that there is no answer,
// and quotes nothing that was sent.
func (s *Service) Verify(ctx context.Context, token string, ip netip.Addr) error {
	if err := s.verify(ctx, token, ip); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

func (s *Service) verify(ctx context.Context, token string, ip netip.Addr) error {
	form := url.Values{"response": {token}}
	for name, values := range s.Fields {
		form[name] = values
	}
	if ip.IsValid() {
		form.Set("remoteip", ip.String())
	}
	res, err := outbound.Do(ctx, s.Client, outbound.Request{
		Method: http.MethodPost, URL: s.URL, Body: []byte(form.Encode()),
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}},
	})
	if err != nil {
		return err
	}
	var said struct {
		Success  *bool    `json:"success"`
		Hostname string   `json:"hostname"`
		Codes    []string `json:"error-codes"`
	}
	if err := outbound.DecodeJSON(res.Body, &said); err != nil || said.Success == nil {
		return fmt.Errorf("status %d without an answer", res.Status)
	}
	if !*said.Success {
		for _, code := range said.Codes {
			if slices.Contains(mistakes(), code) {
				return errors.New("the service says " + code)
			}
		}
		return s.Refused
	}
	if s.Hostname != "" && !strings.EqualFold(said.Hostname, s.Hostname) {
		return fmt.Errorf("%w: it was made elsewhere", s.Refused)
	}
	return nil
}
