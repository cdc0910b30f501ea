package auth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth/internal/passhash"
)

func testPasswords(t testing.TB, o PasswordOptions) *passwords {
	t.Helper()
	p, err := newPasswords(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPasswordPolicy(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	for _, c := range []struct {
		password string
		about    []string
		want     []string
	}{
		{"correct horse battery staple", nil, nil},
		{"hunter2hunter2", nil, nil},
		{"correct-horse-1", nil, nil},
		{"new-password-1", nil, nil},
		{"Tr0ub4dor&3", nil, nil},
		{"my-new-passphrase-2", nil, nil},
		{"s3cret-Passphrase", nil, nil},
		{"пароль-для-всех", nil, nil},
		{"🐎🔋📎✅🐎🔋📎✅x", nil, nil},
		{strings.Repeat("long words ", 23)[:253] + "end", nil, nil},
		{"short7!", nil, []string{"length"}},
		{"🐎🔋📎✅", nil, []string{"length"}}, // characters count, not bytes
		{"{]%^~*#&@+=", nil, nil},         // nothing but marks is no reason by itself
		{"qwerty", nil, []string{"length", "common"}},
		{strings.Repeat("long words ", 24), nil, []string{"too_long"}},
		{"password", nil, []string{"common"}},
		{"Password123!", nil, []string{"common"}},
		{"P@ssw0rd", nil, []string{"common"}},
		{"p4ssw0rd2024", nil, []string{"common"}},
		{"12345678", nil, []string{"common"}},
		{"87654321", nil, []string{"common"}},
		{"1q2w3e4r", nil, []string{"common"}},
		{"qwertyuiop", nil, []string{"common"}},
		{"iloveyou1", nil, []string{"common"}},
		{"letmein123", nil, []string{"common"}},
		{"aaaaaaaa", nil, []string{"common"}},
		{"abcabcabc", nil, []string{"common"}},
		{"abcdefgh", nil, []string{"common"}},
		{"abcddcba", nil, []string{"common"}},
		{"asdfasdf", nil, []string{"common"}},
		{"sunshine!!", nil, []string{"common"}},
		{"ｐａｓｓｗｏｒｄ", nil, []string{"common"}}, // full width, the same after NFKC
		{"adalovelace1", []string{"adalovelace@example.com"}, []string{"similar"}},
		{"Ada.Lovelace!", []string{"adalovelace@example.com"}, []string{"similar"}},
		{"adalovelace@example.com", []string{"adalovelace@example.com"}, []string{"similar"}},
		{"AdaLovelace42", []string{"x@example.com", "Ada Lovelace"}, []string{"similar"}},
		{"adalovelace writes programs", []string{"adalovelace@example.com"}, nil},
		{"a-fine-passphrase", []string{"a@example.com", "Ann"}, nil},
	} {
		got, err := p.check(t.Context(), c.password, c.about...)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v (%v)", c.password, got, c.want, err)
		}
	}
}

type checker func(context.Context, string) (bool, error)

func (f checker) Breached(ctx context.Context, pw string) (bool, error) { return f(ctx, pw) }

func TestBreachCheck(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		breached bool
		err      error
		closed   bool
		want     []string
		fails    bool
	}{
		"clean":        {},
		"breached":     {breached: true, want: []string{"breached"}},
		"fails open":   {err: down},
		"fails closed": {err: down, closed: true, fails: true},
	} {
		p := testPasswords(t, PasswordOptions{BreachFailClosed: c.closed, Breach: checker(func(context.Context, string) (bool, error) { return c.breached, c.err })})
		got, err := p.check(t.Context(), "correct horse battery")
		if !slices.Equal(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	asked := false
	p := testPasswords(t, PasswordOptions{Breach: checker(func(context.Context, string) (bool, error) { asked = true; return false, nil })})
	if _, err := p.check(t.Context(), "password"); err != nil || asked {
		t.Errorf("a password that is refused anyway was sent out: %v", err)
	}
}

// NIST SP 800-63B-4: what is typed alike is alike.
func TestPasswordsAreNormalised(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	encoded, err := p.hash(t.Context(), "Ångström ﬁve €")
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"Ångström five €", "A\u030angstro\u0308m five €", "Å" + "ngström ﬁve €"} {
		if ok, _, err := p.verify(t.Context(), encoded, same, nil); !ok || err != nil {
			t.Errorf("%q: %v, %v", same, ok, err)
		}
	}
	// A foreign hash may be of the raw form.
	raw := passhash.Argon2id{Memory: 8, Time: 1, Threads: 1}.Make("ﬁve of them")
	if ok, rehash, err := p.verify(t.Context(), raw, "ﬁve of them", nil); !ok || !rehash || err != nil {
		t.Errorf("raw form: %v, %v, %v", ok, rehash, err)
	}
}

func TestRehash(t *testing.T) {
	argon := func(m, t uint32) string {
		return passhash.Argon2id{Memory: m, Time: t, Threads: 1}.Make("secret words")
	}
	bcrypt, err := passhash.MakeBcrypt("secret words", 10)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o       PasswordOptions
		encoded string
		want    bool
	}{
		"as configured":         {PasswordOptions{}, argon(19456, 2), false},
		"stronger":              {PasswordOptions{}, argon(20000, 3), false},
		"less memory":           {PasswordOptions{}, argon(19455, 2), true},
		"fewer passes":          {PasswordOptions{}, argon(19456, 1), true},
		"bcrypt":                {PasswordOptions{}, bcrypt, true},
		"bcrypt where wanted":   {PasswordOptions{BcryptCost: 10}, bcrypt, false},
		"bcrypt of lower cost":  {PasswordOptions{BcryptCost: 11}, bcrypt, true},
		"argon where bcrypt is": {PasswordOptions{BcryptCost: 10}, argon(8, 1), true},
	} {
		ok, rehash, err := testPasswords(t, c.o).verify(t.Context(), c.encoded, "secret words", nil)
		if !ok || err != nil || rehash != c.want {
			t.Errorf("%s: %v, rehash %v, %v", name, ok, rehash, err)
		}
	}
}

// The same work is done for no hash, a broken one, and an absurd password.
func TestDummyWork(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	for name, c := range map[string][2]string{
		"no hash": {"", "secret words"}, "broken": {"$argon2id$", "secret words"}, "endless": {"", strings.Repeat("x", 1<<16)},
	} {
		before := p.works()
		ok, _, err := p.verify(t.Context(), c[0], c[1], nil)
		if ok || err != nil || p.works() != before+1 {
			t.Errorf("%s: %v, %v, %d hashes", name, ok, err, p.works()-before)
		}
	}
}

// Nor does a password that is not in normal form tell accounts apart by the
// second comparison it takes.
func TestDummyWorkForOddPasswords(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	encoded, err := p.hash(t.Context(), "secret words")
	if err != nil {
		t.Fatal(err)
	}
	var works []uint64
	for _, hash := range []string{encoded, ""} {
		before := p.works()
		if ok, _, err := p.verify(t.Context(), hash, "ﬁve wrong words", nil); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		works = append(works, p.works()-before)
	}
	if works[0] != works[1] {
		t.Errorf("%d hashes for an account, %d without", works[0], works[1])
	}
}

// The pool: never more at once than there are workers, few between the
// question and the answer, and an honest refusal beyond the queue.
func TestPoolBounds(t *testing.T) {
	p := testPasswords(t, PasswordOptions{Workers: 3, Queue: 10})
	var working, admitted, mostWorking, mostAdmitted, refused, done atomic.Int32
	raise := func(most *atomic.Int32, n int32) {
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
	}
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 400 {
		wg.Go(func() {
			err := p.run(context.Background(), func(context.Context) error {
				raise(&mostAdmitted, admitted.Add(1))
				return nil
			}, func() error {
				raise(&mostWorking, working.Add(1))
				<-release
				working.Add(-1)
				admitted.Add(-1)
				return nil
			})
			switch {
			case err == nil:
				done.Add(1)
			case errors.Is(err, CodeOverloaded):
				if refused.Add(1) == 400-16 { // all but the queue and those admitted
					close(release)
				}
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if mostWorking.Load() != 3 || mostAdmitted.Load() != 6 || done.Load() != 16 || refused.Load() != 384 {
		t.Errorf("working %d, admitted %d, done %d, refused %d", mostWorking.Load(), mostAdmitted.Load(), done.Load(), refused.Load())
	}
	if p.waiting.Load() != 0 || len(p.admission) != 0 || len(p.cpu) != 0 {
		t.Error("places were lost")
	}
}

func TestPoolGivesPlacesBack(t *testing.T) {
	p := testPasswords(t, PasswordOptions{Workers: 1, Queue: 1})
	refuse := errors.New("refused")
	if err := p.run(t.Context(), func(context.Context) error { return refuse }, func() error { t.Error("worked"); return nil }); !errors.Is(err, refuse) {
		t.Errorf("error %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.run(t.Context(), nil, func() error { panic("bug") })
	}()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.run(gone, nil, func() error { t.Error("worked"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if p.waiting.Load() != 0 || len(p.admission) != 0 || len(p.cpu) != 0 {
		t.Error("places were lost")
	}
}

func BenchmarkBareHash(b *testing.B) {
	encoded := passhash.Argon2id{Memory: 19456, Time: 2, Threads: 1}.Make("correct horse battery")
	h, err := passhash.Parse(encoded)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !h.Verify("correct horse battery") {
			b.Fatal("wrong")
		}
	}
}
