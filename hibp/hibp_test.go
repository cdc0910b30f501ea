package hibp_test

import (
	"crypto/sha1" //nolint:gosec // the API's index
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/hibp"
)

const password = "correct horse battery"

func TestBreached(t *testing.T) {
	sum := sha1.Sum([]byte(password)) //nolint:gosec // the API's index
	digits := strings.ToUpper(hex.EncodeToString(sum[:]))
	prefix, suffix := digits[:5], digits[5:]
	other := strings.Repeat("0", 35)
	release := make(chan struct{})
	defer close(release)
	leastTen := []hibp.Option{hibp.WithMinCount(10)}
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		opts    []hibp.Option
		want    bool
		wantErr bool
	}{
		"known":            {lines(other+":3", suffix+":2"), nil, true, false},
		"known, lower":     {lines(strings.ToLower(suffix) + ":2"), nil, true, false},
		"unknown":          {lines(other + ":3"), nil, false, false},
		"nothing":          {lines(), nil, false, false},
		"padding":          {lines(suffix + ":0"), nil, false, false},
		"too few":          {lines(suffix + ":9"), leastTen, false, false},
		"enough":           {lines(suffix + ":10"), leastTen, true, false},
		"server error":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, nil, false, true},
		"rate limited":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, nil, false, true},
		"not the API":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, nil, false, true},
		"endless":          {lines(slices.Repeat([]string{strings.Repeat(" ", 25) + other + ":1"}, 20000)...), nil, false, true}, // lines of 64 bytes, so that the limit is between lines
		"one endless line": {lines(strings.Repeat("x", 1<<20)), nil, false, true},
		"no count":         {lines(suffix), nil, false, true},
		"no count of it":   {lines(suffix + ":"), nil, false, true},
		"one leak":         {lines(suffix + ":1"), nil, true, false},
		"half a hash":      {lines(suffix[1:]+":1", suffix+":2"), nil, false, true},
		"count of words":   {lines(suffix + ":many"), nil, false, true},
		"slow":             {func(http.ResponseWriter, *http.Request) { <-release }, nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var path, padding, agent string
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, padding, agent = r.URL.Path, r.Header.Get("Add-Padding"), r.UserAgent()
				c.answer(w, r)
			}))
			t.Cleanup(func() {
				api.CloseClientConnections()
				go api.Close() // may wait for the slow handler
			})
			patience := time.Minute
			if name == "slow" {
				patience = 200 * time.Millisecond
			}
			got, err := hibp.New(append(slices.Clip(c.opts), hibp.WithURL(api.URL), hibp.WithTimeout(patience))...).Breached(t.Context(), password)
			if got != c.want || (err != nil) != c.wantErr {
				t.Errorf("%v, %v", got, err)
			}
			if err != nil && (strings.Contains(err.Error(), prefix) || strings.Contains(err.Error(), suffix) || strings.Contains(err.Error(), password)) {
				t.Errorf("the error tells: %v", err)
			}
			if name == "slow" {
				return // its handler still runs
			}
			if path != "/range/"+prefix || padding != "true" || agent != "authmount" {
				t.Errorf("asked %q, padding %q, as %q", path, padding, agent)
			}
		})
	}
}

func lines(list ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, strings.Join(list, "\r\n")) }
}

func TestUnreachable(t *testing.T) {
	if _, err := hibp.New(hibp.WithURL("http://127.0.0.1:1")).Breached(t.Context(), password); err == nil || strings.Contains(err.Error(), "/range/") {
		t.Errorf("error %v", err)
	}
	if _, err := hibp.New(hibp.WithURL(":")).Breached(t.Context(), password); err == nil {
		t.Error("no error")
	}
	if known, err := hibp.New(hibp.WithURL("http://a b")).Breached(t.Context(), password); err == nil || known {
		t.Errorf("no URL: %v, %v", known, err)
	}
}
