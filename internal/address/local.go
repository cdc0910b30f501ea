package address

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file is what a local part may be made of beyond ASCII. It follows the
// e-mail profile of UTS #39 (section 3.3) at the level "single script", so that
// of two addresses that look alike no more than one can be somebody's here:
//
//   - in NFKC: no full-width letters, ligatures or mathematical letters, and no
//     code point that another one replaces
//   - letters and marks of one script in modern use (UAX #31, table 5), with
//     ASCII digits and marks; Japanese, Korean and Chinese are one script each
//   - nothing that stands for ASCII: no letter that a change of case turns into
//     ASCII, no mark on an ASCII character, no homoglyph (lookalike.go)

// scripts are those that a local part may be written in; each row may be mixed.
// Han belongs to several.
var scripts = [][]*unicode.RangeTable{
	{unicode.Latin},
	{unicode.Cyrillic}, {unicode.Greek}, {unicode.Armenian}, {unicode.Georgian}, {unicode.Hebrew}, {unicode.Arabic}, {unicode.Thaana}, {unicode.Ethiopic},
	{unicode.Han, unicode.Hiragana, unicode.Katakana, prolonged}, {unicode.Han, unicode.Bopomofo}, {unicode.Han, unicode.Hangul},
	{unicode.Devanagari}, {unicode.Bengali}, {unicode.Gurmukhi}, {unicode.Gujarati}, {unicode.Oriya}, {unicode.Tamil}, {unicode.Telugu},
	{unicode.Kannada}, {unicode.Malayalam}, {unicode.Sinhala}, {unicode.Thai}, {unicode.Lao}, {unicode.Tibetan}, {unicode.Myanmar}, {unicode.Khmer},
}

// prolonged is the mark for long vowels of both kana, which belongs to neither.
var prolonged = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x30fc, Hi: 0x30fc, Stride: 1}}}

// conjoining are the parts of syllables: what NFC leaves of them is no modern
// Korean.
var conjoining = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x1100, Hi: 0x11ff, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xd7b0, Hi: 0xd7ff, Stride: 1},
}}

// maxMarks is how many combining marks may follow one letter (UTS #39, 5.4).
const maxMarks = 4

// fold maps a character to the one that stands for all its simple case variants
// (Unicode's simple case folding, no locale): the lower-case letter. İ and ı
// have no variants in it.
func fold(r rune) rune {
	lower := unicode.ToLower(unicode.ToUpper(r))
	for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
		if c == lower {
			return lower
		}
	}
	return r
}

// foldText folds a text in NFC, and leaves it in NFC.
func foldText(s string) string { return norm.NFC.String(strings.Map(fold, s)) }

// strange tells whether a character beyond ASCII is no letter or mark, or one
// for which normalisation puts another code point, so that the address would not
// come back as it was given.
func strange(r rune) bool {
	if r < 0x80 {
		return false
	}
	if !unicode.In(r, unicode.L, unicode.M) {
		return true
	}
	given := string(r)
	normal := norm.NFC.String(given)
	return normal != given && utf8.RuneCountInString(normal) == 1
}

// internationalOK judges a local part in NFC that is not all ASCII and has
// nothing strange. What ASCII is allowed is judged elsewhere.
func internationalOK(local string) bool {
	if !norm.NFKC.IsNormalString(local) {
		return false
	}
	var before rune
	marks := 0
	for _, r := range local {
		switch {
		case r < 0x80:
			marks = 0
		case unicode.Is(unicode.M, r):
			marks++
			if before < 0x80 || marks > maxMarks || fold(r) != r {
				return false
			}
		case unicode.Is(conjoining, r) || toASCII(r):
			return false
		default:
			marks = 0
		}
		before = r
	}
	return oneScript(local) && !looksASCII(local) && !looksASCII(foldText(local))
}

// toASCII tells whether some mapping of case, in whatever locale, makes ASCII of
// a letter: those of İ, ı, ſ and the Kelvin sign do.
func toASCII(r rune) bool {
	return unicode.ToLower(r) < 0x80 || unicode.ToUpper(r) < 0x80 || unicode.ToTitle(r) < 0x80 || fold(r) < 0x80
}

// oneScript tells whether the letters of a text are all of one script. Marks
// that belong to no script go with each.
func oneScript(s string) bool {
	for _, script := range scripts {
		if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.In(r, script...) && !anyScript(r) }) {
			return true
		}
	}
	return false
}

// anyScript tells whether a character goes with every script.
func anyScript(r rune) bool {
	if r < 0x80 { // Latin's letters are in its table
		return !unicode.Is(unicode.Latin, r)
	}
	return unicode.Is(unicode.M, r) && unicode.Is(unicode.Inherited, r)
}
