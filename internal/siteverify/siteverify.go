// Package siteverify verifies a token at a captcha service. The services share one
// protocol: a form with the secret, the token and the client's IP address.
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

// Service is a captcha service. It is safe for concurrent use once it is configured.
type Service struct {
	Name     string // prefix of every error
	Refused  error  // wrapped by the error for an invalid token
	URL      string
	Client   *http.Client
	Fields   url.Values // further fields of the form: the secret, a site key
	Hostname string     // if set, the token must come from this host
}

// configurationErrors are the service's error codes about the configuration, not about the token.
func configurationErrors() []string {
	return []string{"missing-input-secret", "invalid-input-secret", "internal-error", "sitekey-secret-mismatch", "not-using-dummy-passcode"}
}

// unreadable are the statuses of a service that cannot read the request.
func unreadable() []int {
	return []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnprocessableEntity, http.StatusRequestHeaderFieldsTooLarge}
}

// Verify checks a token. Any error other than Service.Refused means that there is no
// result. A request that the service cannot read is refused, because only the token in it
// comes from the client. Errors quote nothing that was sent.
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
	var result struct {
		Success  *bool    `json:"success"`
		Hostname string   `json:"hostname"`
		Codes    []string `json:"error-codes"`
	}
	if err := outbound.DecodeJSON(res.Body, &result); err != nil || result.Success == nil {
		if slices.Contains(unreadable(), res.Status) {
			return fmt.Errorf("%w: status %d", s.Refused, res.Status)
		}
		return fmt.Errorf("status %d without a result", res.Status)
	}
	if !*result.Success {
		for _, code := range result.Codes {
			if slices.Contains(configurationErrors(), code) {
				return errors.New("the service returned " + code)
			}
		}
		if slices.Contains(result.Codes, "bad-request") { // the token's fault, or a mistake in the configuration that the log shows
			return fmt.Errorf("%w: the service returned bad-request", s.Refused)
		}
		return s.Refused
	}
	if s.Hostname != "" && !strings.EqualFold(result.Hostname, s.Hostname) {
		return fmt.Errorf("%w: it is for another host", s.Refused)
	}
	return nil
}
