package commonpw

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestContains(t *testing.T) {
	for _, common := range []string{
		"password", "PASSWORD", "password1", "Password1", "Password123!", "P@ssw0rd", "p4$$w0rd", "P@$$w0rd!", "p4ssw0rd2024", "Passw0rd#2025",
		"password12345678", "qwerty123456!", "admin11111111", "welcome2024!", "administrator!2", "admin@123", "iloveyou1", "letmein123", "trustno1!",
		"***sunshine***", "!!dragon1", "superman_1", "contraseña", "Contraseña1",
		"12345678", "87654321", "01234567", "1234567890", "12344321", "123123123", "1q2w3e4r", "q1w2e3r4", "1qaz2wsx", "!qaz2wsx",
		"qwertyuiop", "QWERTYUIOP", "poiuytrewq", "qwertzui", "azertyui", "asdfasdf", "sdfgsdfg", "56785678", "asdfghjkl", "abcdefgh", "hgfedcba", "abcddcba", "!@#$%^&*", "*&^%$#@!",
		"aaaaaaaa", "ééééééééé", "........", "🐎🐎🐎🐎🐎🐎🐎🐎", "abcabcabc", "10101010", "aaaa1111", "00000001", "!?!?!?!?",
	} {
		if !Contains(common) {
			t.Errorf("%q is not common", common)
		}
	}
	for _, fine := range []string{
		"", "x", "hunter2hunter2", "correct horse battery staple", "correct-horse-1", "new-password-1", "s3cret-Passphrase", "Tr0ub4dor&3", "my-new-passphrase-2",
		"summer-of-69-was-good", "monkey-business-7", "baseball-42-nights", "abc-123-xyz-789", "dragons eat planets", "password of a lifetime", "sunshine31415926",
		"{]%^~*#&@+=", "🐎🔋📎✅🐎🔋📎✅", "{]%^~abcde*#&@+=", "{]%^~*&password@+=!!", "नमस्तेदुनिया", "пароль-для-всех", "ni hao shijie", "kX9#vQ2!", "7391640825",
	} {
		if Contains(fine) {
			t.Errorf("%q is common", fine)
		}
	}
}

// Words are in lower case and have no removable tail.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range strings.Fields(words) {
		bare := strings.TrimPrefix(w, "=")
		if seen[bare] {
			t.Errorf("%q is listed twice", bare)
		}
		seen[bare] = true
		if bare != strings.ToLower(bare) || !utf8.ValidString(bare) {
			t.Errorf("%q can never match", w)
		}
		if !Contains(bare) {
			t.Errorf("%q is listed and not found", w)
		}
	}
	if len(seen) < 500 {
		t.Errorf("%d words", len(seen))
	}
	for _, row := range rows {
		if row != strings.ToLower(row) || len(row) < 6 {
			t.Errorf("row %q", row)
		}
	}
}

func FuzzContains(f *testing.F) {
	for _, s := range []string{"password", "P@ssw0rd", "\xff\xfe", "ǅǅǅǅǅ", "!@#$%^&*", strings.Repeat("ab", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Contains(s) != Contains(strings.ToLower(s)) {
			t.Errorf("the case of %q matters", s)
		}
	})
}

func BenchmarkContains(b *testing.B) {
	for b.Loop() {
		Contains("correct horse battery staple")
	}
}

// Parts of a row and repetitions count from five characters.
func TestShortestSequence(t *testing.T) {
	for s, want := range map[string]bool{"qwert": true, "trewq": true, "qwer": false, "asdfg": true, "": false} {
		if walks(s) != want {
			t.Errorf("%q is a piece of a row: %v", s, !want)
		}
	}
	for s, want := range map[string]bool{"aaaaa": true, "ababa": true, "aaaa": false, "abcde": false, "": false} {
		if repeats(s) != want {
			t.Errorf("%q repeats: %v", s, !want)
		}
	}
}

// Every row, in both directions.
func TestRows(t *testing.T) {
	for _, way := range []string{
		"89012", "vwxyz", "yuiop", "sdfgh", "zxcvbnm", "qwertz", "yxcvbnm", "azerty",
		"2wsx3edc4", "wsxedc", "2w3e4r", "w2e3r4", "qweasdzxc", "zxcrty", "abcd12", "b2c3d4", "bc123de", "23qwea", "a2b3c4",
		"@#$%^&*()_", "~!@#$", "werty1234", "sdf123", "xcv123", "wer1234", "ghjkl1234", "uiop1234",
	} {
		back := reverse(way)
		if !walks(way) || !walks(back) || !Contains(way+back) {
			t.Errorf("%q is no way", way)
		}
	}
}
