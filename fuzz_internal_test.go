package auth

import (
	"context"
	"strings"
	"testing"
	"time"
)

func FuzzRate(f *testing.F) {
	f.Add(5, int64(time.Minute), int64(0), 1)
	f.Add(3, int64(time.Second), int64(-5), -2)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, burst int, per, offset int64, cost int) {
		if burst < 1 || burst > 1000 || per < int64(time.Millisecond) || per > int64(24*time.Hour) || cost < -2000 || cost > 2000 || offset > per || offset < -per {
			return
		}
		r := Rate{Burst: burst, Per: time.Duration(per)}
		next, ok, wait, remaining := r.Apply(now.Add(time.Duration(offset)), now, cost)
		if remaining < 0 || remaining > burst || (ok && wait != 0) || (!ok && wait <= 0) || (ok && next.Before(now)) {
			t.Errorf("%v %d %d: %v %v %v %d", r, offset, cost, next, ok, wait, remaining)
		}
	})
}

// A rate of nothing refuses nothing, and has nobody wait.
func TestNoRate(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{{}, {Burst: 5}, {Per: time.Minute}} {
		if _, ok, wait, remaining := r.Apply(time.Time{}, time.Now(), 7); !ok || wait != 0 || remaining < 1 {
			t.Errorf("%v: %t %v %d", r, ok, wait, remaining)
		}
	}
}

func FuzzVerify(f *testing.F) {
	c := &config{secrets: [][]byte{[]byte("a secret of the fuzzer's, 32 b.!")}, now: func() time.Time { return time.Unix(1767323045, 0) }}
	c.tokens.Issuer = "https://auth.test"
	c.tokens.Remember = -1
	a := &Auth{cfg: *c}
	if err := a.buildTokens(); err != nil {
		f.Fatal(err)
	}
	good, _, err := a.accessToken(context.Background(), User{ID: "u"}, Session{ID: "s"}, nil, c.now())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{good, good + "A", good[1:], "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", strings.ToLower(good)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if claims, err := a.Verify(s); err == nil && claims.UserID != "u" {
			t.Errorf("%q is accepted: %+v", s, claims)
		}
	})
}
