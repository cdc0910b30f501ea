package auth

import (
	"bytes"
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"github.com/authmount/auth/internal/passhash"
)

const benchPassword = "correct horse battery"

// Compare BareHash with PasswordsVerify, and BareHashParallel with
// PasswordsVerifyParallel, in one run: the difference is the pool.

func benchVerify(b *testing.B) (verify func(testing.TB), bare func(testing.TB)) {
	p := testPasswords(b, PasswordOptions{})
	encoded, err := p.hash(b.Context(), "", benchPassword)
	if err != nil {
		b.Fatal(err)
	}
	h, err := passhash.Parse(encoded)
	if err != nil {
		b.Fatal(err)
	}
	admit := func(context.Context) error { return nil }
	verify = func(b testing.TB) {
		if ok, _, err := p.verify(context.Background(), "", encoded, benchPassword, admit); !ok || err != nil {
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
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // forget the peak so far
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
