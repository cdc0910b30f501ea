package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

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
		{"{]%^~*#&@+=", nil, nil},         // symbols alone are no reason to refuse it
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
		// A similar part has four letters or more, with at most two letters and six characters
		// around it.
		{"lise1234", []string{"lise@example.com"}, []string{"similar"}},
		{"lis12345", []string{"lis@example.com"}, nil},
		{"lise123456", []string{"Lise"}, []string{"similar"}},
		{"12lise3456", []string{"Lise"}, []string{"similar"}},
		{"lise1234567", []string{"Lise"}, nil},
		{"12lise34567", []string{"Lise"}, nil},
		{"xlise42y", []string{"Lise"}, []string{"similar"}},
		{"xylise42z", []string{"Lise"}, nil},
		{"{]%^~*#&@+=", []string{"Lise"}, nil},
		// Repetitions of it are nothing new.
		{"carolcarol", []string{"carol@example.com", "Carol"}, []string{"similar"}},
		{"Carol-Carol-Carol-1", []string{"x@example.com", "Carol"}, []string{"similar"}},
		{"1carol2carol3", []string{"carol@example.com"}, []string{"similar"}},
		{"carolcarolsings", []string{"carol@example.com"}, nil},
		{"what carol sings at night", []string{"carol@example.com", "Carol"}, nil},
		{"carol and carol sing at night", []string{"carol@example.com", "Carol"}, nil},
	} {
		got, err := p.check(t.Context(), passwordRules{p.o.MinLength, true}, c.password, c.about...)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v (%v)", c.password, got, c.want, err)
		}
	}
}

func TestUnsafePasswordOptions(t *testing.T) {
	for says, o := range map[string]PasswordOptions{
		"MinLength below":     {MinLength: 7},
		"MaxLength has":       {MaxLength: 63},
		"MinLength is above":  {MinLength: 65, MaxLength: 64},
		"Workers":             {Workers: -1},
		"Queue":               {Queue: -1},
		"OWASP":               {Argon2id: Argon2idParams{Memory: 19456, Time: 1, Threads: 1}},
		"argon2 m in KiB":     {Argon2id: Argon2idParams{Memory: 1 << 20, Time: 2, Threads: 1}},
		"argon2 t":            {Argon2id: Argon2idParams{Memory: 19456, Time: 1 << 30, Threads: 1}},
		"argon2 m times t":    {Argon2id: Argon2idParams{Memory: 256 << 10, Time: 32, Threads: 1}},
		"BcryptCost has to":   {BcryptCost: 9},
		"between 10 and 16":   {BcryptCost: 17},
		"weaker than OWASP's": {Argon2id: Argon2idParams{Memory: 19456, Time: 2}},
	} {
		if _, err := newPasswords(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want one about %q", o, err, says)
		}
	}
}

// bcrypt reads 72 bytes, so longer passwords are refused if it creates the hashes.
func TestBcryptLimit(t *testing.T) {
	p := testPasswords(t, PasswordOptions{BcryptCost: 10})
	for password, want := range map[string][]string{
		strings.Repeat("long word", 8):       nil,
		strings.Repeat("long word", 8) + "s": {"too_long"},
		strings.Repeat("слово-", 7):          {"too_long"}, // 42 characters, 77 bytes
		"secret\x00words":                    {"too_long"},
	} {
		if got, err := p.check(t.Context(), passwordRules{p.o.MinLength, true}, password); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}
	encoded, err := p.hash(t.Context(), hashOwner{}, "secret words")
	if err != nil || !strings.HasPrefix(encoded, "$2a$10$") {
		t.Fatalf("%q, %v", encoded, err)
	}
	if ok, rehash, err := p.verify(t.Context(), hashOwner{}, encoded, "secret words", nil); !ok || rehash || err != nil {
		t.Errorf("%v, %v, %v", ok, rehash, err)
	}
}

// The policy checks the normal form, and returns only known reasons.
func FuzzPasswordCheck(f *testing.F) {
	p := testPasswords(f, PasswordOptions{})
	for _, s := range [][2]string{
		{"correct horse battery", "ada@example.com"}, {"ｐａｓｓｗｏｒｄ", ""}, {"e\u0301e\u0301e\u0301e\u0301", "éééé"}, {"ﬁﬁﬁﬁ", "fi@fi"},
		{"\ufdfa", "\ufdfa@x"}, {"\xff\xfe", "\xff"}, {"adalovelace1", "adalovelace@example.com"}, {strings.Repeat("\u0344", 40), "@"},
	} {
		f.Add(s[0], s[1])
	}
	order := []string{"length", "too_long", "common", "similar"}
	f.Fuzz(func(t *testing.T, password, about string) {
		got, err := p.check(t.Context(), passwordRules{p.o.MinLength, true}, password, about)
		again, errAgain := p.check(t.Context(), passwordRules{p.o.MinLength, true}, nfkc(password), about)
		if err != nil || errAgain != nil || !slices.Equal(got, again) {
			t.Errorf("%q: %v, %v; in normal form %v, %v", password, got, err, again, errAgain)
		}
		next := 0
		for _, reason := range got {
			at := slices.Index(order[next:], reason)
			if at < 0 {
				t.Fatalf("%q: reasons %v", password, got)
			}
			next += at + 1
		}
		if n := utf8.RuneCountInString(nfkc(password)); slices.Contains(got, "length") != (n < 8) || slices.Contains(got, "too_long") != (n > 256) {
			t.Errorf("%q has %d characters: %v", password, n, got)
		}
	})
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
		got, err := p.check(t.Context(), passwordRules{p.o.MinLength, true}, "correct horse battery")
		if !slices.Equal(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	asked := false
	p := testPasswords(t, PasswordOptions{Breach: checker(func(context.Context, string) (bool, error) { asked = true; return false, nil })})
	if _, err := p.check(t.Context(), passwordRules{p.o.MinLength, true}, "password"); err != nil || asked {
		t.Errorf("a password that is refused anyway was sent out: %v", err)
	}
}

// NIST SP 800-63B-4: passwords that are typed alike are equal.
func TestPasswordsAreNormalised(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	encoded, err := p.hash(t.Context(), hashOwner{}, "Ångström ﬁve €")
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"Ångström five €", "A\u030angstro\u0308m five €", "Å" + "ngström ﬁve €"} {
		if ok, _, err := p.verify(t.Context(), hashOwner{}, encoded, same, nil); !ok || err != nil {
			t.Errorf("%q: %v, %v", same, ok, err)
		}
	}
	// A foreign hash may be of the raw form. It is then renewed, however strong it is.
	raw := passhash.Argon2id(p.o.Argon2id).Make("ﬁve of them")
	if ok, rehash, err := p.verify(t.Context(), hashOwner{}, raw, "ﬁve of them", nil); !ok || !rehash || err != nil {
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
		ok, rehash, err := testPasswords(t, c.o).verify(t.Context(), hashOwner{}, c.encoded, "secret words", nil)
		if !ok || err != nil || rehash != c.want {
			t.Errorf("%s: %v, rehash %v, %v", name, ok, rehash, err)
		}
	}
}

// The same work is done for a missing hash, a broken one, and an absurd password.
func TestDummyWork(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	for name, c := range map[string][2]string{
		"no hash": {"", "secret words"}, "broken": {"$argon2id$", "secret words"}, "endless": {"", strings.Repeat("x", 1<<16)},
	} {
		before := p.hashCount()
		ok, _, err := p.verify(t.Context(), hashOwner{}, c[0], c[1], nil)
		if ok || err != nil || p.hashCount() != before+1 {
			t.Errorf("%s: %v, %v, %d hashes", name, ok, err, p.hashCount()-before)
		}
	}
}

// The second comparison of a password that is not in normal form does not reveal accounts.
func TestDummyWorkForOddPasswords(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	encoded, err := p.hash(t.Context(), hashOwner{}, "secret words")
	if err != nil {
		t.Fatal(err)
	}
	var works []uint64
	for _, hash := range []string{encoded, ""} {
		before := p.hashCount()
		if ok, _, err := p.verify(t.Context(), hashOwner{}, hash, "ﬁve wrong words", nil); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		works = append(works, p.hashCount()-before)
	}
	if works[0] != works[1] {
		t.Errorf("%d hashes for an account, %d without", works[0], works[1])
	}
}

// A full pool returns an error with a time to retry, and a caller who leaves it has
// computed nothing.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPasswords(t, PasswordOptions{Workers: 1, Queue: 1})
		before := p.hashCount()
		release := make(chan struct{})
		computed := make(chan error, 1)
		go func() { // occupies the processor
			computed <- p.run(t.Context(), hashOwner{}, nil, func() error { <-release; return nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		for range 2 { // one waits for the processor, one in the queue
			go func() {
				_, _, err := p.verify(ctx, hashOwner{}, "", "secret words", nil)
				results <- err
			}()
		}
		synctest.Wait()
		_, err := p.hash(t.Context(), hashOwner{}, "secret words")
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeOverloaded || e.RetryAfter <= 0 {
			t.Errorf("error %v", err)
		}
		cancel()
		for range 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		}
		close(release)
		if err := <-computed; err != nil {
			t.Errorf("error %v", err)
		}
		if n := p.hashCount() - before; n != 1 {
			t.Errorf("%d computations, want the one that was under way", n)
		}
		if _, err := p.hash(t.Context(), hashOwner{}, "secret words"); err != nil {
			t.Errorf("error %v", err)
		}
	})
}

// admit is called right before the hash, and its error is returned.
func TestAdmit(t *testing.T) {
	p := testPasswords(t, PasswordOptions{})
	refuse, before := errors.New("refused"), p.hashCount()
	if ok, _, err := p.verify(t.Context(), hashOwner{}, "", "secret words", func(context.Context) error { return refuse }); ok || err != refuse { //nolint:errorlint // the same error, not wrapped
		t.Errorf("%v, %v", ok, err)
	}
	if p.hashCount() != before {
		t.Error("a hash was computed")
	}
}

// Passwords in tests are cheap, unless an option sets their cost.
func TestCheapPasswords(t *testing.T) {
	for name, c := range map[string]struct {
		o     PasswordOptions
		cheap bool
	}{
		"usual":       {PasswordOptions{}, true},
		"longer":      {PasswordOptions{MinLength: 12}, true},
		"by bcrypt":   {PasswordOptions{BcryptCost: 10}, false},
		"as is named": {PasswordOptions{Argon2id: Argon2idParams{Memory: 19456, Time: 3, Threads: 1}}, false},
	} {
		p := testPasswords(t, c.o)
		before, unknown := p.o, p.dummy
		cheap, err := kit{&Auth{passwords: p}}.CheapPasswords()
		if err != nil || cheap != c.cheap {
			t.Errorf("%s: %t, %v", name, cheap, err)
		}
		want := before.Argon2id
		if c.cheap {
			want = Argon2idParams{Memory: 64, Time: 1, Threads: 1}
		}
		if p.o.Argon2id != want || p.o.BcryptCost != before.BcryptCost || (fmt.Sprint(p.dummy) != fmt.Sprint(unknown)) != c.cheap {
			t.Errorf("%s: %+v", name, p.o.Argon2id)
		}
	}
}
