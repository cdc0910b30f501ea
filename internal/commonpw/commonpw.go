// Package commonpw detects the passwords that attackers try first: a list of common words
// and phrases, their usual variants, keyboard walks, sequences and repetitions. It does
// not reject ordinary passphrases.
package commonpw

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed words.txt
var words string

// list holds the words. A leading "=" in the file marks words that are common only as
// they are, without variants.
var list = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		exact := strings.HasPrefix(w, "=")
		m[strings.TrimPrefix(w, "=")] = !exact
	}
	return m
}()

// rows are keyboard walks and sequences.
var rows = []string{
	"01234567890123456789", "abcdefghijklmnopqrstuvwxyz",
	"zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm", "qazwsxedcrfvtgbyhnujm", "1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0",
	"qweasdzxcrtyfghvbn", "abcd1234", "a1b2c3d4e5f6g7h8", "abc123def456", "123qweasdzxc", "1a2b3c4d5e6f",
	"!@#$%^&*()_+", "~!@#$%^&*()",
	"qwerty123456789", "asdf1234567890", "zxcv1234567890", "qwer1234567890", "asdfghjkl1234567890", "qwertyuiop1234567890",
}

// maxMarks is the maximum number of marks around a word that do not make the password
// stronger.
const maxMarks = 6

// Contains reports whether a password is common.
func Contains(password string) bool {
	pw := strings.ToLower(password)
	if _, ok := list[pw]; ok || repeats(pw) || walks(pw) {
		return true
	}
	core := strings.TrimFunc(pw, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if utf8.RuneCountInString(pw)-utf8.RuneCountInString(core) > maxMarks {
		return false
	}
	if repeats(core) || walks(core) {
		return true
	}
	for _, form := range []string{pw, core} {
		if len(form) <= 24 && (listed(form) || listed(unleet(form))) {
			return true
		}
	}
	return false
}

// listed looks a word up without its tail: the few digits and marks, or the sequence of
// them, that people add because of composition rules.
func listed(s string) bool {
	if list[s] {
		return true
	}
	stem := strings.TrimRightFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	tail := s[len(stem):]
	return list[stem] && (len(tail) <= 5 || repeats(tail) || walks(tail))
}

var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// unleet replaces digits and marks in a word by the letters that they represent. It keeps
// the tail.
func unleet(s string) string {
	stem := strings.TrimRightFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	return leet.Replace(stem) + s[len(stem):]
}

// repeats reports whether a password repeats one to three characters, or consists of at
// most two.
func repeats(s string) bool {
	r := []rune(s)
	if len(r) < 5 {
		return false
	}
	for n := 1; n <= 3 && 2*n < len(r); n++ {
		if slices.Equal(r[n:], r[:len(r)-n]) {
			return true
		}
	}
	slices.Sort(r)
	return len(slices.Compact(r)) <= 2
}

// walks reports whether a password is a part of a row, forwards, backwards, or there and
// back.
func walks(s string) bool {
	if len(s) < 5 {
		return false
	}
	half := s[:(len(s)+1)/2]
	for _, row := range rows {
		back := reverse(row)
		if strings.Contains(row, s) || strings.Contains(back, s) {
			return true
		}
		if len(half) >= 4 && s[len(s)-len(half):] == reverse(half) && strings.Contains(row, half) {
			return true
		}
		if len(s)%2 == 0 && len(half) >= 4 && s == half+half && strings.Contains(row, half) {
			return true
		}
	}
	return false
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}
