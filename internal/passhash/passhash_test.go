package passhash

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// Vectors: argon2 from the reference implementation's command, bcrypt and scrypt from the
// usual test strings of their papers, PBKDF2 from RFC 6070 and its SHA-2 counterparts,
// Firebase from its published example project.
var vectors = []struct{ name, encoded, password string }{
	{"argon2id", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password"},
	{"argon2i", "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA", "password"},
	{"bcrypt 2a", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"},
	{"bcrypt 2y", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"},
	{"scrypt, RFC 7914", "$scrypt$ln=10,r=8,p=16$TmFDbA$/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA", "password"},
	{"PBKDF2-SHA-1, RFC 6070", "$pbkdf2-sha1$i=4096$c2FsdA$SwB5AbdlSJq+rUnZJvch0GWkKcE", "password"},
	{"PBKDF2-SHA-256", "$pbkdf2-sha256$i=4096$c2FsdA$xeR41ZKIyEGqUw22hFxMjZYok6ABzk4RpJY4c6qYE0o", "password"},
	{"PBKDF2-SHA-512", "$pbkdf2-sha512$i=4096$c2FsdA$0Zexsz2wFD4BixLz0dFHnmzevcyXxcD4f2kC4HL0V7UUPzBgJkGz1VzTNZiMs2uEN2Bg7NUy4Dm3QqI5Q0ry1Q", "password"},
	{"Django", "pbkdf2_sha256$4096$salt$xeR41ZKIyEGqUw22hFxMjZYok6ABzk4RpJY4c6qYE0o=", "password"},
	{"Django, SHA-1", "pbkdf2_sha1$4096$salt$SwB5AbdlSJq+rUnZJvch0GWkKcE=", "password"},
	{"Django, SHA-512", "pbkdf2_sha512$4096$salt$0Zexsz2wFD4BixLz0dFHnmzevcyXxcD4f2kC4HL0V7UUPzBgJkGz1VzTNZiMs2uEN2Bg7NUy4Dm3QqI5Q0ry1Q==", "password"},
	{"in base64url", "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj-qf-YFY4NeBbtA", "password"},
	{"Firebase", "$firebase-scrypt$ln=14,r=8,p=1$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==$jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$Bw==", "user1password"},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		h, err := Parse(v.encoded)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		if !h.Verify(v.password) {
			t.Errorf("%s: the right password does not match", v.name)
		}
		for _, wrong := range []string{"", v.password + "x", strings.ToUpper(v.password) + "y"} {
			if h.Verify(wrong) {
				t.Errorf("%s: %q matches", v.name, wrong)
			}
		}
	}
}

func TestMake(t *testing.T) {
	p := Argon2id{Memory: 64, Time: 1, Threads: 1}
	one, two := p.Make("secret"), p.Make("secret")
	if one == two {
		t.Error("two hashes have one salt")
	}
	h, err := Parse(one)
	if err != nil || !h.Verify("secret") || !h.AtLeast(p) || h.AtLeast(Argon2id{Memory: 65, Time: 1}) || h.AtLeast(Argon2id{Memory: 64, Time: 2}) {
		t.Errorf("%q: %v", one, err)
	}
}

// bcrypt hashes at most 72 bytes, and treats a NUL as the end or as the start of the next
// round: such passwords have no bcrypt hash.
func TestBcryptLength(t *testing.T) {
	long, wide := strings.Repeat("x", 72), strings.Repeat("ж", 36)
	for password, others := range map[string][]string{
		long:   {long + "more", long + "\x00", long + "x", long[:71]},
		wide:   {wide + "ж", wide + "\x00", wide[:71]},
		"abc":  {"abc\x00abc", "abc\x00", "abc\x00def", "\x00abc", "abc\x00abc\x00abc", strings.Repeat("abc\x00", 18), strings.Repeat("abc\x00", 19)},
		"word": {"", "wor", "words", "Word"},
	} {
		encoded, err := MakeBcrypt(password, 4)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Parse(encoded)
		if err != nil || !h.Verify(password) || h.BcryptCost() != 4 {
			t.Errorf("%q: %v", password, err)
		}
		for _, other := range others {
			if h.Verify(other) {
				t.Errorf("%q has the hash of %q", other, password)
			}
		}
	}
	for _, bad := range []string{long + "x", "a\x00b", "\x00", wide + "ж"} {
		if _, err := MakeBcrypt(bad, 4); !errors.Is(err, ErrNoFit) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Hostile hashes: too expensive, or matching every password.
func TestParseRefuses(t *testing.T) {
	const salt, sum = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, s := range []string{
		"", "$", "plain", "$md5$x", "$argon2id$v=19$m=65536,t=2,p=1$" + salt, "$argon2id$v=16$m=65536,t=2,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$", "$argon2id$v=19$m=65536,t=2,p=1$$" + sum,
		"$argon2id$v=19$m=262145,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=65536,t=33,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=65536,t=0,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=65536,t=2,p=0$" + salt + "$" + sum,
		"$argon2id$v=19$m=8,t=2,p=16$" + salt + "$" + sum, "$argon2id$v=19$t=2,m=65536,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=4294967297,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=-1,t=2,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$AAAA", "$scrypt$ln=63,r=8,p=1$" + salt + "$" + sum, "$scrypt$ln=20,r=64,p=16$" + salt + "$" + sum,
		"$scrypt$ln=14,r=8,p=17$" + salt + "$" + sum, "$pbkdf2-sha256$i=10000001$" + salt + "$" + sum, "$pbkdf2-md5$i=1000$" + salt + "$" + sum,
		"pbkdf2_sha256$1000$salt", "pbkdf2_sha256$1000$salt$" + sum + "$x", "pbkdf2_sha256$",
		"pbkdf2_md5$1000$salt$" + sum, "pbkdf2_sha256$1000$$" + sum, "$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
		"$2a$05$short", "$2a$05!CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "$2a$05$CCCCCCCCCC!CCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
		"$2a$05$CCCCCCCCCCCCCCCCCCCCC.$5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "$firebase-scrypt$ln=14,r=8,p=1$" + salt + "$" + sum + "$$Bw", "$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$" + strings.Repeat("A", 1024),
	} {
		if h, err := Parse(s); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsafe) {
			t.Errorf("%q: %+v, %v", s, h, err)
		}
	}
}

// Parse distinguishes a malformed hash from one that is too expensive: the first is a
// typing error, the second needs a decision by the importer.
func TestParseErrors(t *testing.T) {
	const salt, sum, bcrypted = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
	for _, s := range []string{
		"", "scrypt$ln=10,r=8,p=1$" + salt + "$" + sum, "$scrypt$ln=10,r=8,p=1$" + salt, "$scrypt$ln=10,r=8,p=1$" + salt + "$" + sum + "$x", "$scrypt$ln=10,r=8$" + salt + "$" + sum,
		"$scrypt$ln=10,r=8,p=1,x=1$" + salt + "$" + sum, "$firebase-scrypt$ln=14,r=8,p=1$" + salt + "$" + sum + "$QUFB", "$firebase-scrypt$ln=14,r=8$" + salt + "$" + sum + "$QUFB$Bw",
		"$firebase-scrypt$ln=14,r=8,p=1$" + salt + "$" + sum + "$QUFB!$Bw", "$firebase-scrypt$ln=14,r=8,p=1$" + salt + "$" + sum + "$QUFB$Bw!", "$firebase-scrypt$ln=14,r=8,p=1$" + salt + "$" + sum + "$QUFB$Bw$x",
		"$pbkdf2-sha256$i=1$" + salt, "$pbkdf2-sha256$i=1$" + salt + "$" + sum + "$x", "$pbkdf2-sha256$i=0$" + salt + "$" + sum, "$pbkdf2-sha256$i=x$" + salt + "$" + sum, "$pbkdf2-sha256$1$" + salt + "$" + sum,
		"$pbkdf2-sha256$i=4294967296$" + salt + "$" + sum, "$pbkdf2-sha256$i=1$" + salt + "!$" + sum, "$pbkdf2-sha256$i=1$" + salt + "$" + sum + "!", "$argon2id$v=19$65536,2,1$" + salt + "$" + sum,
		"pbkdf2_sha256$1$salt$" + sum + "!", "$2a$03$" + bcrypted, "$2a$32$" + bcrypted, "$2a$05$" + bcrypted[1:], "$2a$05$" + bcrypted + "x", "$pbkdf2-sha256$i=100$" + strings.Repeat("A", 960) + "$" + sum,
	} {
		if h, err := Parse(s); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %+v, %v", s, h, err)
		}
	}
}

// New hashes have 128 bits of salt and 256 bits of hash (RFC 9106, section 4), also those
// without a known password.
func TestSizes(t *testing.T) {
	form := regexp.MustCompile(`^\$argon2id\$v=19\$m=64,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`)
	p := Argon2id{Memory: 64, Time: 1, Threads: 1}
	for _, made := range []string{p.Make("secret"), p.MakeUnknown()} {
		if !form.MatchString(made) {
			t.Error(made)
		}
	}
	for _, v := range vectors {
		h, err := Parse(v.encoded)
		if err != nil || h.AtLeast(Argon2id{}) != (v.name == "argon2id") || (h.BcryptCost() == 0) == strings.HasPrefix(v.name, "bcrypt") {
			t.Errorf("%s: %v, cost %d", v.name, err, h.BcryptCost())
		}
	}
}

// Parameters may each be within their limits while their product takes minutes. The error
// names the limit and does not quote the hash.
func TestWorkLimits(t *testing.T) {
	const salt, sum = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	long := strings.Repeat("A", 680) // 510 bytes: 26 blocks of SHA-1
	for _, c := range []struct{ encoded, says string }{
		{"$pbkdf2-sha1$i=10000000$" + salt + "$" + sum, "PBKDF2"},
		{"$pbkdf2-sha1$i=400000$" + salt + "$" + long, "PBKDF2"},
		{"$pbkdf2-sha256$i=10000000$" + salt + "$" + sum, ""},
		{"$pbkdf2-sha1$i=300000$" + salt + "$" + long, ""},
		{"$argon2id$v=19$m=262144,t=9,p=1$" + salt + "$" + sum, "m times t"},
		{"$argon2id$v=19$m=262144,t=8,p=1$" + salt + "$" + sum, ""},
		{"$argon2i$v=19$m=65536,t=32,p=4$" + salt + "$" + sum, ""},
		{"$argon2i$v=19$m=65536,t=2,p=17$" + salt + "$" + sum, "argon2 p"},
		{"$scrypt$ln=18,r=8,p=5$" + salt + "$" + sum, "times p"},
		{"$scrypt$ln=18,r=8,p=4$" + salt + "$" + sum, ""},
		{"$scrypt$ln=19,r=8,p=1$" + salt + "$" + sum, "memory"},
		{"$firebase-scrypt$ln=18,r=16,p=1$" + salt + "$" + sum + "$QUFB$Bw", "memory"},
		{"$scrypt$ln=18,r=9,p=1$" + salt + "$" + sum, "memory"},
		{"$scrypt$ln=24,r=1,p=1$" + salt + "$" + sum, "memory"},
		{"$scrypt$ln=25,r=1,p=1$" + salt + "$" + sum, "ln up to"},
		{"$scrypt$ln=1,r=64,p=16$" + salt + "$" + sum, ""},
		{"$scrypt$ln=1,r=65,p=1$" + salt + "$" + sum, "r up to"},
		{"$scrypt$ln=1,r=1,p=17$" + salt + "$" + sum, "p up to"},
		{"$pbkdf2-sha1$i=10000000$" + salt + "$" + strings.Repeat("A", 27), ""},       // 20 bytes, one block
		{"$pbkdf2-sha1$i=10000000$" + salt + "$" + strings.Repeat("A", 28), "PBKDF2"}, // 21
		{"$pbkdf2-sha512$i=1$" + salt + "$" + strings.Repeat("A", 20), "16 to 512"},   // 15 bytes
		{"$pbkdf2-sha512$i=1$" + salt + "$" + strings.Repeat("A", 22), ""},
		{"$pbkdf2-sha512$i=1$" + salt + "$" + strings.Repeat("A", 683), ""},
		{"$pbkdf2-sha512$i=1$" + salt + "$" + strings.Repeat("A", 684), "16 to 512"},
		{"$pbkdf2-sha256$i=10$" + strings.Repeat("A", 960) + "$" + sum, ""}, // 1024 bytes in total
		{"$argon2id$v=19$m=16,t=1,p=2$" + salt + "$" + sum, ""},
		{"$argon2id$v=19$m=15,t=1,p=2$" + salt + "$" + sum, "8 KiB for each p"},
		{"$2b$17$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "bcrypt cost"},
		{"$argon2id$v=19$m=65536,t=2,p=1$$" + sum, "salt"},
		{"$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$AAAA", "16 to 512"},
	} {
		switch _, err := Parse(c.encoded); {
		case c.says == "" && err != nil:
			t.Errorf("%q: %v", c.encoded, err)
		case c.says != "" && (!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), sum)):
			t.Errorf("%q: %v, want one about %q", c.encoded, err, c.says)
		}
	}
}

func TestCheck(t *testing.T) {
	for p, ok := range map[Argon2id]bool{
		{Memory: 19456, Time: 2, Threads: 1}:               true,
		{Memory: 262144, Time: 8, Threads: 4}:              true,
		{Memory: 262145, Time: 1, Threads: 1}:              false,
		{Memory: 65536, Time: 33, Threads: 1}:              false,
		{Memory: 262144, Time: 9, Threads: 1}:              false,
		{Memory: 65536, Time: 2, Threads: 17}:              false,
		{Memory: 65536, Time: 2}:                           false,
		{Memory: 65536, Threads: 1}:                        false,
		{Memory: 15, Time: 2, Threads: 2}:                  false,
		{Memory: 1<<32 - 1, Time: 1<<32 - 1, Threads: 255}: false,
	} {
		if err := p.Check(); (err == nil) != ok || (!ok && !errors.Is(err, ErrUnsafe)) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.encoded)
	}
	f.Add("$scrypt$ln=14,r=8,p=1$c2FsdA$AAAA")
	f.Add("pbkdf2_sha1$1$a$")
	f.Add("$2a$05!CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := Parse(s)
		if err != nil {
			return
		}
		cost := h.params["m"]*h.params["t"] + h.params["i"]/100 + h.params["cost"]*50
		if cost == 0 {
			cost = h.params["r"] << h.params["ln"] * h.params["p"]
		}
		if cost < 5000 && h.Verify(s+"x") && h.scheme != "bcrypt" {
			t.Errorf("%q matches an arbitrary password", s)
		}
	})
}

// Verifying against a hash without a known password takes as much work as against any
// other.
func TestMakeUnknown(t *testing.T) {
	t.Parallel()
	p := Argon2id{Memory: 64, Time: 1, Threads: 1}
	for _, encoded := range []string{p.MakeUnknown(), MakeUnknownBcrypt(4)} {
		h, err := Parse(encoded)
		if err != nil || h.Verify("") || h.Verify("a password") {
			t.Errorf("%s: %v", encoded, err)
		}
	}
	one, other := p.MakeUnknown(), p.MakeUnknown()
	if h, err := Parse(one); err != nil || !h.AtLeast(p) || one == other {
		t.Errorf("%+v %v", h, err)
	}
	if h, err := Parse(MakeUnknownBcrypt(12)); err != nil || h.BcryptCost() != 12 {
		t.Errorf("%+v %v", h, err)
	}
}
