package auth

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// maxTokenResponse is the most that x/oauth2 reads of a token response.
const maxTokenResponse = 1 << 20

// lenientExpiry corrects the member expires_in of token responses, because some providers
// send "" or a fraction, for which x/oauth2 refuses the whole response. The member is only
// a hint for OnProviderToken.
type lenientExpiry struct{ base http.RoundTripper }

// lenient returns a client for the token endpoint.
func lenient(c *http.Client) *http.Client {
	base := c.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	own := *c
	own.Transport = lenientExpiry{base}
	return &own
}

// RoundTrip is the transport's, with a corrected body.
func (l lenientExpiry) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxTokenResponse))
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	body = withWholeExpiry(body)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// withWholeExpiry rounds a lifetime in a JSON object down to whole seconds, and removes one
// that is no number. It returns every other body unchanged.
func withWholeExpiry(body []byte) []byte {
	var doc map[string]json.RawMessage
	if json.Unmarshal(body, &doc) != nil {
		return body
	}
	changed := false
	for name, raw := range doc {
		if !strings.EqualFold(name, "expires_in") { // as encoding/json compares names
			continue
		}
		var number json.Number // as x/oauth2 reads it
		if json.Unmarshal(raw, &number) == nil {
			if _, err := number.Int64(); err == nil || number == "" { // "" is null
				continue
			}
		}
		text := strings.TrimSpace(strings.Trim(string(raw), `"`))
		changed = true
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 1 { // also not NaN
			doc[name] = strconv.AppendInt(nil, int64(min(seconds, math.MaxInt32)), 10)
		} else {
			delete(doc, name)
		}
	}
	if !changed {
		return body
	}
	if corrected, err := json.Marshal(doc); err == nil {
		return corrected
	}
	return body
}
