package authclient

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/token"
)

// bareFeed is a feed without a connection, whose messages and failures a test supplies. log
// holds its lines.
func bareFeed(o RevocationOptions) (f *feed, log *harness.SyncBuffer) {
	log = &harness.SyncBuffer{}
	c := &config{log: slog.New(slog.NewTextHandler(log, nil)), now: time.Now, feed: &o}
	return newFeed(c, token.NewRevocations(token.Options{}, time.Now), func() {}), log
}

// An outage is in the log when it takes effect, not at the end of the next attempt. It counts
// from the time at which the server knew everything, not from the arrival of its message.
func TestOutageOfTheFeedIsLoggedInTime(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"fresh": 0, "old": 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f, log := bareFeed(RevocationOptions{FailClosed: true})
			for range 3 {
				f.apply(&RevocationPage{Position: "p", Current: true, AgeMs: int(age.Milliseconds())}, time.Now())
				<-time.After(feedSilence - age - 1)
				synctest.Wait()
				if err := f.state(); err != nil || log.String() != "" {
					t.Errorf("%s, before: %v, log %s", name, err, log)
				}
			}
			<-time.After(1)
			synctest.Wait()
			if err := f.state(); !errors.Is(err, errSilent) || strings.Count(log.String(), "level=WARN msg=\"authclient: the feed of revocations is down: all access tokens are refused") != 1 {
				t.Errorf("%s: %v, log %s", name, err, log)
			}
			f.note(io.ErrUnexpectedEOF)
			if n := strings.Count(log.String(), "is down"); n != 1 {
				t.Errorf("%s: logged %d times", name, n)
			}
			f.apply(&RevocationPage{Position: "p", Current: true}, time.Now())
			if !strings.Contains(log.String(), "is back") || f.state() != nil {
				t.Errorf("%s: %v, log %s", name, f.state(), log)
			}
			f.lapse.Stop()
		})
	}
}

// A refusal does not pass, so the log repeats it every minute as an error, with the remedy. An
// outage that passes by itself is logged once.
func TestRefusalsOfTheFeedAreRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		lines  int
		remedy string
	}{
		"wrong key":  {&Error{Status: http.StatusUnauthorized, Code: auth.CodeInvalidAPIKey}, 3, "level=ERROR msg=\"authclient: the feed of revocations is down: revoked access tokens are accepted until they expire (the key of WithSecretKey is wrong"},
		"scope":      {&Error{Status: http.StatusForbidden, Code: auth.CodeMissingPermission}, 3, "lack auth.revocations.read"},
		"not served": {&Error{Status: http.StatusNotFound, Code: auth.CodeNotFound}, 3, "mount the Handler of package admin"},
		"outage":     {&Error{Status: http.StatusBadGateway}, 1, "level=WARN"},
		"no feed":    {&Error{Status: http.StatusServiceUnavailable, Code: auth.CodeRevocationsUnavailable}, 1, "WatchRevocations"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, log := bareFeed(RevocationOptions{})
			f.late = true
			for range 60 { // three minutes
				f.note(c.err)
				<-time.After(3 * time.Second)
			}
			if n := strings.Count(log.String(), "is down"); n != c.lines || strings.Count(log.String(), c.remedy) != c.lines {
				t.Errorf("%s: %d lines: %s", name, n, log)
			}
		})
	}
	// An outage that turns into a refusal is reported again at once.
	f, log := bareFeed(RevocationOptions{})
	f.late = true
	f.note(io.ErrUnexpectedEOF)
	f.note(&Error{Status: http.StatusUnauthorized, Code: auth.CodeInvalidAPIKey})
	if got := log.String(); strings.Count(got, "WARN") != 1 || strings.Count(got, "ERROR") != 1 {
		t.Error(got)
	}
}

// A feed that broke or froze streams again soon after it answers. A proxy that never lets
// streams through costs few attempts.
func TestFeedStreamsAgain(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for name, c := range map[string]struct {
		broken, frozen time.Duration // streams are refused until then; nothing is answered until then
		back           time.Duration // after that
		most           int           // attempts at a stream
	}{
		"one refused stream": {broken: time.Second, back: 3 * time.Second, most: 5},
		"frozen":             {frozen: 30 * time.Second, back: 5 * time.Second, most: 12},
		"frozen for long":    {frozen: 10 * time.Minute, back: 5 * time.Second, most: 150},
		"never a stream":     {broken: time.Hour, back: 2 * time.Minute, most: 70},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, attempts, streaming := time.Now(), 0, make(chan time.Duration, 1)
			http1 := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				if !strings.HasSuffix(r.URL.Path, "/admin/revocations") {
					s.Handler().ServeHTTP(w, r)
					return w.Result(), nil
				}
				stream, passed := r.Header.Get("Accept") == "text/event-stream", time.Since(start)
				if stream {
					attempts++
				}
				const page = `{"position": "p", "current": true}`
				switch {
				case attempts == 1: // the first stream breaks off after its first message
					return feedAnswer("text/event-stream", io.NopCloser(strings.NewReader("data: "+page+"\n\n"))), nil
				case passed < c.frozen:
					<-r.Context().Done()
					return nil, r.Context().Err()
				case !stream:
					return feedAnswer("application/json", io.NopCloser(strings.NewReader(page))), nil
				case passed < c.broken:
					w.WriteHeader(http.StatusBadGateway)
					return w.Result(), nil
				}
				streaming <- passed
				out, in := io.Pipe()
				go func() {
					for r.Context().Err() == nil {
						_, _ = io.WriteString(in, "data: "+page+"\n\n")
						_ = pauseFor(r.Context(), time.Second)
					}
					_ = in.CloseWithError(r.Context().Err())
				}()
				return feedAnswer("text/event-stream", out), nil
			})}
			v, err := NewVerifier(t.Context(), s.url, WithHTTPClient(http1), WithSecretKey("sk_test"), WithRevocations(RevocationOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if back := <-streaming - max(c.broken, c.frozen); back > c.back || attempts > c.most {
				t.Errorf("%s: streams %v after the recovery, in %d attempts", name, back, attempts)
			}
		})
	}
}

func feedAnswer(mediaType string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {mediaType}}, Body: body}
}
