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
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		least   int
		want    bool
		wantErr bool
	}{
		"known":            {lines(other+":3", suffix+":2"), 0, true, false},
		"known, lower":     {lines(strings.ToLower(suffix) + ":2"), 0, true, false},
		"unknown":          {lines(other + ":3"), 0, false, false},
		"nothing":          {lines(), 0, false, false},
		"padding":          {lines(suffix + ":0"), 0, false, false},
		"too few":          {lines(suffix + ":9"), 10, false, false},
		"enough":           {lines(suffix + ":10"), 10, true, false},
		"server error":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 0, false, true},
		"rate limited":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, 0, false, true},
		"not the API":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, 0, false, true},
		"endless":          {lines(slices.Repeat([]string{strings.Repeat(" ", 25) + other + ":1"}, 20000)...), 0, false, true}, // lines of 64 bytes, so that the limit cuts none
		"one endless line": {lines(strings.Repeat("x", 1<<20)), 0, false, true},
		"no count":         {lines(suffix), 0, false, true},
		"count of words":   {lines(suffix + ":many"), 0, false, true},
		"slow":             {func(http.ResponseWriter, *http.Request) { <-release }, 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var path, padding, agent string
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, padding, agent = r.URL.Path, r.Header.Get("Add-Padding"), r.UserAgent()
				c.answer(w, r)
			}))
			t.Cleanup(func() {
				api.CloseClientConnections()
				go api.Close() // may wait for the slow one
			})
			got, err := hibp.New(hibp.Options{URL: api.URL, MinCount: c.least, Timeout: 200 * time.Millisecond}).Breached(t.Context(), password)
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

func TestNobodyThere(t *testing.T) {
	if _, err := hibp.New(hibp.Options{URL: "http://127.0.0.1:1"}).Breached(t.Context(), password); err == nil || strings.Contains(err.Error(), "/range/") {
		t.Errorf("error %v", err)
	}
	if _, err := hibp.New(hibp.Options{URL: ":"}).Breached(t.Context(), password); err == nil {
		t.Error("no error")
	}
}
