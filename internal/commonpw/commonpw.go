// Package commonpw knows the passwords that are guessed first: a list of common
// words and phrases, their usual disguises, keyboard walks, sequences and
// repetitions. It is meant to stop those and no ordinary passphrase.
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

// list holds the words; a leading "=" in the file marks those that are common
// only as they stand, without disguises.
var list = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		exact := strings.HasPrefix(w, "=")
		m[strings.TrimPrefix(w, "=")] = !exact
	}
	return m
}()

// rows are walked along by lazy fingers and counters.
var rows = []string{
	"01234567890123456789", "abcdefghijklmnopqrstuvwxyz",
	"zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm", "qazwsxedcrfvtgbyhnujm", "1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0",
	"qweasdzxcrtyfghvbn", "abcd1234", "a1b2c3d4e5f6g7h8", "abc123def456", "123qweasdzxc", "1a2b3c4d5e6f",
	"!@#$%^&*()_+", "~!@#$%^&*()",
	"qwerty123456789", "asdf1234567890", "zxcv1234567890", "qwer1234567890", "asdfghjkl1234567890", "qwertyuiop1234567890",
}

// maxDressing is how many marks around a word are dress and not part of the
// password's strength.
const maxDressing = 6

// Contains tells whether a password is one of the first to be guessed.
func Contains(password string) bool {
	pw := strings.ToLower(password)
	if _, ok := list[pw]; ok || repeats(pw) || walks(pw) {
		return true
	}
	core := strings.TrimFunc(pw, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if utf8.RuneCountInString(pw)-utf8.RuneCountInString(core) > maxDressing {
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

// listed looks a word up without the tail that rules about composition have
// taught people to add: a few digits and marks, or more of them in a row.
func listed(s string) bool {
	if list[s] {
		return true
	}
	stem := strings.TrimRightFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	tail := s[len(stem):]
	return list[stem] && (len(tail) <= 5 || repeats(tail) || walks(tail))
}

var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// unleet reads digits and marks within a word as the letters they stand for,
// and leaves the tail alone.
func unleet(s string) string {
	stem := strings.TrimRightFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	return leet.Replace(stem) + s[len(stem):]
}

// repeats tells whether a password is one to three characters over and over, or
// made of no more than two.
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

// walks tells whether a password is a piece of a row, forwards, backwards, or
// there and back.
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
