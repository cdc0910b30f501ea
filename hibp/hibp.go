// Package hibp checks passwords with the Pwned Passwords range API, which receives only
// the first five hex digits of a password's SHA-1 (k-anonymity).
//
//	auth.WithPasswords(auth.PasswordOptions{Breach: hibp.New()})
//
// If a check fails or takes too long, the password is accepted with a warning in the log,
// unless PasswordOptions.BreachFailClosed is set.
package hibp

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // the API's index; nothing is protected by it
	"encoding/hex"
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

// maxResponse limits the size of a response; a padded range has about 40 KiB.
const maxResponse = 1 << 20

// Client calls the API. It is safe for concurrent use.
type Client struct {
	url      string
	timeout  time.Duration
	minCount int
	client   *http.Client
}

var _ auth.BreachChecker = (*Client)(nil)

// Option changes a Client.
type Option func(*Client)

// WithURL sets the URL of the API; default https://api.pwnedpasswords.com.
func WithURL(url string) Option { return func(c *Client) { c.url = strings.TrimSuffix(url, "/") } }

// WithTimeout limits one check; default 2 s.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithMinCount sets how often a password must occur in known leaks to count as breached;
// default 1.
func WithMinCount(n int) Option { return func(c *Client) { c.minCount = n } }

// WithHTTPClient sets the client; the default is a new one.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.client = h } }

// New returns a Client.
func New(opts ...Option) *Client {
	c := &Client{url: "https://api.pwnedpasswords.com", timeout: 2 * time.Second, minCount: 1, client: &http.Client{}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Breached reports whether a password is in a known leak. Errors never contain the
// password or any part of its hash.
func (c *Client) Breached(ctx context.Context, password string) (bool, error) {
	sum := sha1.Sum([]byte(password)) //nolint:gosec // the API's index
	digits := strings.ToUpper(hex.EncodeToString(sum[:]))
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/range/"+digits[:5], http.NoBody)
	if err != nil {
		return false, errors.New("hibp: the URL is not valid")
	}
	req.Header.Set("Add-Padding", "true") // hides the number of entries
	req.Header.Set("User-Agent", "authmount")
	res, err := c.client.Do(req)
	if err != nil {
		if at := (*url.Error)(nil); errors.As(err, &at) {
			err = at.Err // without the URL, which contains a part of the hash
		}
		return false, fmt.Errorf("hibp: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("hibp: the API returned status %d", res.StatusCode)
	}
	return c.search(res.Body, digits[5:])
}

// search reads lines such as "0018A45C4D1DEF81644B54AB7F969B88D65:3". Padding has the
// count 0.
func (c *Client) search(body io.Reader, suffix string) (bool, error) {
	limited := &io.LimitedReader{R: body, N: maxResponse}
	lines := bufio.NewScanner(limited)
	for lines.Scan() {
		hash, count, _ := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		n, err := strconv.Atoi(count)
		if err != nil || len(hash) != len(suffix) {
			return false, errors.New("hibp: malformed response")
		}
		if strings.EqualFold(hash, suffix) {
			return n >= c.minCount, nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("hibp: %w", err)
	}
	if limited.N == 0 {
		return false, errors.New("hibp: the response is too long")
	}
	return false, nil
}
