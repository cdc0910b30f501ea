package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/authmount/auth/internal/outbound"
)

// API calls a provider's API with the access token of the user who signed in. Every
// request is limited by the provider's Timeout and every response to 1 MiB; redirects are
// not followed; URLs must be absolute and https. The access token is sent as bearer
// token, so only call the provider. Errors contain nothing that the provider sent. It is
// safe for concurrent use.
type API struct {
	provider    Provider
	accessToken string
	client      *http.Client
}

// NewAPI returns the API for Profile. Package auth calls it; applications call it to test
// their Profile. With a nil client it uses one that follows no redirects.
func NewAPI(p Provider, client *http.Client, accessToken string) *API {
	if client == nil {
		client = outbound.NewClient()
	}
	return &API{provider: p, client: client, accessToken: accessToken}
}

// Provider returns the provider's configuration.
func (api *API) Provider() Provider { return api.provider }

// AccessToken returns the user's access token, for services that do not expect it in the
// header.
func (api *API) AccessToken() string { return api.accessToken }

// LogValue keeps the secrets out of the log.
func (api *API) LogValue() slog.Value { return api.provider.LogValue() }

// String returns a text without secrets, for fmt.
func (api *API) String() string { return "API of " + api.provider.String() }

// GoString is String.
func (api *API) GoString() string { return api.String() }

// Get reads a JSON document into v. A status other than 200 is a *StatusError.
func (api *API) Get(ctx context.Context, rawURL string, v any) error {
	return api.json(ctx, Request{URL: rawURL}, v)
}

// PostForm posts a form (application/x-www-form-urlencoded) and reads a JSON
// document into v. A status other than 200 is a *StatusError.
func (api *API) PostForm(ctx context.Context, rawURL string, form url.Values, v any) error {
	return api.json(ctx, Request{
		Method: http.MethodPost, URL: rawURL, ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode()),
	}, v)
}

func (api *API) json(ctx context.Context, r Request, v any) error {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Accept", "application/json")
	res, err := api.Do(ctx, r)
	if err != nil {
		return err
	}
	where := "API"
	if u, err := url.Parse(r.URL); err == nil {
		where = u.Host + u.Path
	}
	if res.Status != http.StatusOK {
		return fmt.Errorf("%s: %w", where, &StatusError{res.Status})
	}
	if err := outbound.DecodeJSON(res.Body, v); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// Request is any request to a provider's API.
type Request struct {
	Method      string // default GET
	URL         string
	Header      http.Header // an Authorization here replaces the access token
	ContentType string      // content type of Body
	Body        []byte
}

// Response is a response of any status and type, with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte // at most 1 MiB
}

// Do sends a request and returns the response with any status. The error is of a request
// that could not be sent or a response that is incomplete.
func (api *API) Do(ctx context.Context, r Request) (*Response, error) {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if api.accessToken != "" && h.Get("Authorization") == "" {
		h.Set("Authorization", "Bearer "+api.accessToken)
	}
	if r.ContentType != "" {
		h.Set("Content-Type", r.ContentType)
	}
	res, err := outbound.Do(ctx, api.client, outbound.Request{Method: r.Method, URL: r.URL, Header: h, Body: r.Body}) // an empty method is GET, as in net/http
	if err != nil {
		return nil, err
	}
	return (*Response)(res), nil
}

// StatusError is a response of a provider's API with a status other than 200.
type StatusError struct{ Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("status %d", e.Status) }

// withheld reports whether the API refused to return the data.
func withheld(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && (s.Status == http.StatusForbidden || s.Status == http.StatusNotFound)
}
