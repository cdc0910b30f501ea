package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth/internal/passhash"
)

// The maximums that the options' errors name are accepted, and values just above are
// refused.
func TestPasswordOptionsAtTheirBounds(t *testing.T) {
	for name, c := range map[string]struct {
		o    PasswordOptions
		good bool
	}{
		"shortest maximum":     {PasswordOptions{MaxLength: 64}, true},
		"too short a maximum":  {PasswordOptions{MaxLength: 63}, false},
		"longest maximum":      {PasswordOptions{MaxLength: 1024}, true},
		"too long a maximum":   {PasswordOptions{MaxLength: 1025}, false},
		"one worker":           {PasswordOptions{Workers: 1, Queue: 1}, true},
		"least cost":           {PasswordOptions{BcryptCost: 10}, true},
		"too little a cost":    {PasswordOptions{BcryptCost: 9}, false},
		"largest cost":         {PasswordOptions{BcryptCost: 16}, true},
		"too large a cost":     {PasswordOptions{BcryptCost: 17}, false},
		"what bcrypt ignores":  {PasswordOptions{BcryptCost: 10, Argon2id: Argon2idParams{Memory: 1 << 30, Time: 1, Threads: 1}}, true},
		"OWASP's least memory": {PasswordOptions{Argon2id: Argon2idParams{Memory: 7168, Time: 5, Threads: 1}}, true},
	} {
		if _, err := newPasswords(c.o, slog.New(slog.DiscardHandler)); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := newPasswords(PasswordOptions{Argon2id: Argon2idParams{Memory: 1 << 20, Time: 2, Threads: 1}}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "WithPasswords: Argon2id: ") {
		t.Errorf("%v does not name the option", err)
	}
}

// An unknown account costs as much as a known one: its dummy hash is of the same kind.
func TestStandInIsOfTheOptionsKind(t *testing.T) {
	for prefix, o := range map[string]PasswordOptions{"$2a$10$": {BcryptCost: 10}, "$argon2id$": {}} {
		p := testPasswords(t, o)
		made, err := p.make("secret words")
		if err != nil || !strings.HasPrefix(made, prefix) || (p.dummy.BcryptCost() == 10) != (o.BcryptCost == 10) {
			t.Errorf("%s: made %q, stands in %+v, %v", prefix, made, p.dummy, err)
		}
	}
}

// The error of a failed breach check asks to retry soon.
func TestFailedBreachCheckIsTriedAgainSoon(t *testing.T) {
	down := errors.New("down")
	p := testPasswords(t, PasswordOptions{BreachFailClosed: true, Breach: checker(func(context.Context, string) (bool, error) { return false, down })})
	_, err := p.check(t.Context(), passwordRules{p.o.MinLength, true}, "correct horse battery")
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeUnavailable || e.RetryAfter != 5*time.Second || !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

const benchPassword = "correct horse battery"

// Compare BareHash with PasswordsVerify, and BareHashParallel with
// PasswordsVerifyParallel, in one run: the difference is the pool.

func benchVerify(b *testing.B) (verify func(testing.TB), bare func(testing.TB)) {
	p := testPasswords(b, PasswordOptions{})
	encoded, err := p.hash(b.Context(), hashOwner{}, benchPassword)
	if err != nil {
		b.Fatal(err)
	}
	h, err := passhash.Parse(encoded)
	if err != nil {
		b.Fatal(err)
	}
	admit := func(context.Context) error { return nil }
	verify = func(b testing.TB) {
		if ok, _, err := p.verify(context.Background(), hashOwner{}, encoded, benchPassword, admit); !ok || err != nil {
			b.Errorf("%v, %v", ok, err)
		}
	}
	bare = func(b testing.TB) {
		if !h.Verify(benchPassword) {
			b.Error("wrong")
		}
	}
	return verify, bare
}

func BenchmarkBareHash(b *testing.B) {
	_, bare := benchVerify(b)
	b.ReportAllocs()
	for b.Loop() {
		bare(b)
	}
}

func BenchmarkPasswordsVerify(b *testing.B) {
	verify, _ := benchVerify(b)
	b.ReportAllocs()
	for b.Loop() {
		verify(b)
	}
}

func BenchmarkBareHashParallel(b *testing.B) {
	_, bare := benchVerify(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			bare(b)
		}
	})
}

// BenchmarkPasswordsVerifyParallel has 100 callers for each processor.
func BenchmarkPasswordsVerifyParallel(b *testing.B) {
	verify, _ := benchVerify(b)
	b.SetParallelism(100)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			verify(b)
		}
	})
}

// BenchmarkLoginBurst is 400 verifications at once; peak-MiB is the most memory
// the whole process had meanwhile (Linux).
func BenchmarkLoginBurst(b *testing.B) {
	verify, _ := benchVerify(b)
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // reset the peak
	for b.Loop() {
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() { verify(b) })
		}
		wg.Wait()
	}
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := bytes.Cut(status, []byte("VmHWM:")); ok {
		kib, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(kib)/1024, "peak-MiB")
	}
}
