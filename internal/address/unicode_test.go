package address

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// around are the contexts in which each code point is tested.
var around = [][2]string{{"", ""}, {"m", "ke"}, {"", "da"}, {"ad", ""}, {"k", ".1-"}}

// eachCodePoint calls f with local parts for each code point of Unicode in each context;
// in fewer contexts for large classes.
func eachCodePoint(f func(local string, r rune, form int)) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		forms := around
		switch {
		case unicode.In(r, unicode.Han, unicode.Hangul):
			forms = around[:2]
		case unicode.Is(unicode.Co, r) || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C): // unassigned
			forms = around[:1]
		}
		for form, a := range forms {
			f(a[0]+string(r)+a[1], r, form)
		}
	}
}

// For every code point: keys are stable, the normal form has the key of the input, keys
// are valid addresses, two addresses with one key are simple case variants, and only
// ASCII has a key in ASCII.
func TestKeysOfAllCodePoints(t *testing.T) {
	first := map[string]string{}
	accepted := make([]int, len(around))
	eachCodePoint(func(local string, r rune, form int) {
		given := local + "@example.com"
		key := EmailKey(given)
		if EmailKey(key) != key {
			t.Errorf("%+q has the key %+q, which has another one", given, key)
		}
		if r >= 0x80 && !unicode.IsSpace(r) && isASCII(key) {
			t.Errorf("%+q has the key of %q", given, key)
		}
		kept, err := NormalizeEmail(given)
		if err != nil {
			return
		}
		accepted[form]++
		if again, err := NormalizeEmail(kept); err != nil || again != kept {
			t.Errorf("%+q is kept as %+q, which becomes %+q (%v)", given, kept, again, err)
		}
		if EmailKey(kept) != key {
			t.Errorf("%+q has the key %+q, and as kept %+q", given, key, EmailKey(kept))
		}
		if again, err := NormalizeEmail(key); err != nil || again != key {
			t.Errorf("the key %+q of %+q is no address that would be kept", key, given)
		}
		if !unicode.IsSpace(r) && !strings.Contains(kept, "=") && kept != given && r >= 0x80 && len([]rune(kept)) == len([]rune(given)) {
			t.Errorf("%+q came back as %+q", given, kept)
		}
		if other, ok := first[key]; ok && !strings.EqualFold(other, kept) {
			t.Errorf("%+q and %+q have the key %+q", other, kept, key)
		}
		first[key] = kept
	})
	if accepted[0] < 90_000 || accepted[1] < 500 {
		t.Errorf("accepted: %v; the rule refuses whole languages", accepted)
	}
}

// Case variants of an accepted address have the same key.
func TestCaseVariantsShareTheKey(t *testing.T) {
	eachCodePoint(func(local string, r rune, form int) {
		for v := unicode.SimpleFold(r); v != r; v = unicode.SimpleFold(v) {
			one, two := local+"@example.com", strings.Replace(local, string(r), string(v), 1)+"@example.com"
			_, err := NormalizeEmail(one)
			_, errTwo := NormalizeEmail(two)
			if err == nil && errTwo == nil && EmailKey(one) != EmailKey(two) {
				t.Errorf("%+q and %+q: %+q and %+q", one, two, EmailKey(one), EmailKey(two))
			}
		}
	})
}

// Similar addresses must not belong to different owners.
func TestLookalikesAreRefused(t *testing.T) {
	for _, local := range []string{
		"mİke", "mıke", "mi\u0307ke", "ſam", "\u212aen", // case
		"ｍｉｋｅ", "oﬃce", "𝐦𝐢𝐤𝐞", "ⓜike", "mⁱke", "№1", "mike²", "\u212bsa", "ªda", "ŉa", // NFKC
		"mіke", "аdmin", "αda", "adаm", "ada漢", "ада.x", "ᎪᎠ", "ꓮꓓ", "𐐀da", // scripts
		"сосо", "СОСО", "Роса", "οινο", "օսո", "сео.1", "сео-x1", // only lookalikes
		"mɩke", "ɑda", "ɡoogle", "ǃada", "ƽam", "ꜱam", "aʼb", "aˑb", "ada٠", "ada१", "१", "аԁа", // letters and digits that look like ASCII
		"a\u0338b", "ad\u0332a", "\u0301ada", "x\u0301", "1\u0301", "ж\u0301\u0302\u0303\u0304\u0305", "ж\u0345", // marks
		"a\u00adda", "a\u200bda", "a\u200dda", "a\u2060da", "a\ufeffda", "a\u034fda", "ada\ufe0f", "ada\U000e0041", "ada\U000e0100", "a\u3164da", "a\u115fda", "a\uffa0da", "a\u2800da", "a\u180eda", "a\u202eda", "a\u2066da", // invisible
		"😀", "ada★", "a…b", "a—b", "a\u00a0b", "a\u3000b", "a\u2028b", "a\ufffdb", "a\ue000b", "\u1100", "\u0378", "ـada", "аб1٢",
		"=?utf-8?q?ada?=", "a=?b", // encoded words
	} {
		if got, err := NormalizeEmail(local + "@example.com"); err == nil {
			t.Errorf("%+q was taken as %+q", local, got)
		}
		if key := EmailKey(local + "@example.com"); !isASCII(local) && isASCII(key) {
			t.Errorf("%+q has the key %q", local, key)
		}
	}
}

// Names in other languages are accepted.
func TestLocalPartsOfTheWorld(t *testing.T) {
	for _, local := range []string{
		"jörg", "JÖRG", "straße", "ægir", "þóra", "łukasz", "đặng", "nguyễn.văn", "renée+tag", "ñandú", "žižek",
		"иван", "Иван.Петров", "олексій", "γιώργος", "ΓΙΏΡΓΟΣ", "արմեն", "გიორგი", "משה", "محمد", "सुनील", "রবি", "สมชาย", "ສົມ", "മലയാളി", "ಕನ್ನಡ", "తెలుగు", "ગુજરાતી", "ଓଡ଼ିଆ", "ਪੰਜਾਬੀ", "ދިވެހި", "བོད", "កែវ", "தமிழ்", "අමල", "ထွန်း", "ልዑል",
		"用户", "ユーザー", "ひろし1", "田中ひろし", "사용자", "金수", "ㄅㄆ", "иван1979", "user_1", "a|b", "a%b",
	} {
		got, err := NormalizeEmail(local + "@example.com")
		if err != nil {
			t.Errorf("%q is refused", local)
			continue
		}
		if key := EmailKey(got); key != EmailKey(key) {
			t.Errorf("%q: the key %q is not stable", local, key)
		}
	}
}

// Parts of Korean syllables that form no whole syllable are rejected.
func TestConjoiningJamo(t *testing.T) {
	for _, r := range []rune{0x1100, 0x1160, 0x11ff, 0xa960, 0xa97c, 0xd7b0, 0xd7fb} {
		if got, err := NormalizeEmail("사용자" + string(r) + "@example.com"); err == nil {
			t.Errorf("%U passes: %q", r, got)
		}
	}
}

func TestDomains(t *testing.T) {
	for in, want := range map[string]string{
		"straße.de": "xn--strae-oqa.de", "STRASSE.de": "strasse.de", "BÜCHER.example": "xn--bcher-kva.example", "bu\u0308cher.example": "xn--bcher-kva.example",
		"XN--BCHER-KVA.example": "xn--bcher-kva.example", "例え.jp": "xn--r8jz45g.jp", "example。com": "example.com", "ｅxample.com": "example.com",
		"example.com.": "", "example.com。": "", "exa%6dple.com": "", "example%2ecom": "", "exa_mple.com": "", "exa\u00admple.com": "", "exam\u200dple.com": "", "exam\ufe0fple.com": "",
		"xn--a.com": "", "xn--example-.com": "", "xn--\u00fc.com": "", "example.com/x": "", "example.com:25": "", "example.com%00": "", "example.com#x": "", "ex\u2024ample": "", "a..com": "", strings.Repeat("a", 63) + ".com": strings.Repeat("a", 63) + ".com", strings.Repeat("a", 64) + ".com": "", strings.Repeat("\u00e4", 60) + ".com": "", ".com": "", "[::1]": "",
	} {
		given := "Ada@" + in
		got, err := NormalizeEmail(given)
		if want == "" {
			if err == nil {
				t.Errorf("%+q was taken as %q", in, got)
			}
			continue
		}
		if err != nil || got != "Ada@"+want || EmailKey(given) != "ada@"+want {
			t.Errorf("%+q: %q, %v, key %q; want %q", in, got, err, EmailKey(given), want)
		}
	}
}

// The ASCII form of a domain, which is longer than the input, counts.
func TestLongestAddress(t *testing.T) {
	for n, ok := range map[int]bool{20: true, 22: true, 23: false, 26: false} { // labels of 8 bytes from 3 characters
		given := strings.Repeat("a", 64) + "@" + strings.Repeat("\u00e4.", n) + "example.com"
		if got, err := NormalizeEmail(given); (err == nil) != ok || err != nil && got != "" {
			t.Errorf("%d labels: %q, %v", n, got, err)
		}
	}
}

// A lower-case letter can be longer: the key also keeps the length limits.
func TestLongestLocalPart(t *testing.T) {
	for local, ok := range map[string]bool{
		strings.Repeat("\u00e4", 32): true, strings.Repeat("\u00e4", 33): false, strings.Repeat("\u023a", 21): true, strings.Repeat("\u023a", 22): false,
		strings.Repeat("a\u0308", 32): true, // NFC makes them shorter
	} {
		if _, err := NormalizeEmail(local + "@example.com"); (err == nil) != ok {
			t.Errorf("%d bytes of %+q: %v", len(local), local[:2], err)
		}
	}
}

func FuzzEmailKey(f *testing.F) {
	for _, s := range []string{
		"mİke@example.com", "mike@example.com", "ſ@example.com", "\u212a@example.com", "ГИ@example.com", "a@BÜCHER.example", "ada@example。com", "\u1fb3@x.de", "\u03b1\u0345@x.de",
		"j\u030c@x.de", "\u01f0@x.de", "\u1e9e@x.de", "\u0958@x.de", " ada@x.de\u00a0", "\xff@x.de", "ΣΑΣ@x.gr", "XN--A@x.de", "a@xn--a-.de",
	} {
		f.Add(s, "ada@example.com")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		key := EmailKey(one)
		if EmailKey(key) != key || !utf8.ValidString(key) {
			t.Errorf("the key %+q of %+q is not stable", key, one)
		}
		kept, err := NormalizeEmail(one)
		if err != nil {
			return
		}
		if EmailKey(kept) != key {
			t.Errorf("%+q: key %+q, as kept %+q", one, key, EmailKey(kept))
		}
		if again, err := NormalizeEmail(key); err != nil || again != key {
			t.Errorf("%+q: the key %+q is no address that would be kept: %+q, %v", one, key, again, err)
		}
		local, _, _ := strings.Cut(strings.TrimSpace(one), "@")
		if isASCII(local) != isASCII(key) {
			t.Errorf("%+q has the key %+q", one, key)
		}
		if other, err := NormalizeEmail(two); err == nil && (EmailKey(other) == key) != strings.EqualFold(other, kept) {
			t.Errorf("%+q and %+q: keys %+q and %+q", kept, other, key, EmailKey(other))
		}
	})
}
