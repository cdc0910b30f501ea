package address

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file defines the characters of a local part beyond ASCII. It follows the email
// profile of UTS #39 (section 3.3) at the level "single script", so that at most one of
// two similar addresses is accepted:
//
//   - in NFKC: no full-width letters, ligatures or mathematical letters, and no
//     code point that another one replaces
//   - letters and marks of one script in modern use (UAX #31, table 5), with
//     ASCII digits and marks; Japanese, Korean and Chinese are one script each
//   - no replacements of ASCII: no letter that a change of case turns into
//     ASCII, no mark on an ASCII character, no homoglyph (lookalike.go)

// scripts are the scripts of local parts. The scripts of one row may be mixed. Han is in
// several rows.
var scripts = [][]*unicode.RangeTable{
	{unicode.Latin},
	{unicode.Cyrillic}, {unicode.Greek}, {unicode.Armenian}, {unicode.Georgian}, {unicode.Hebrew}, {unicode.Arabic}, {unicode.Thaana}, {unicode.Ethiopic},
	{unicode.Han, unicode.Hiragana, unicode.Katakana, prolonged}, {unicode.Han, unicode.Bopomofo}, {unicode.Han, unicode.Hangul},
	{unicode.Devanagari}, {unicode.Bengali}, {unicode.Gurmukhi}, {unicode.Gujarati}, {unicode.Oriya}, {unicode.Tamil}, {unicode.Telugu},
	{unicode.Kannada}, {unicode.Malayalam}, {unicode.Sinhala}, {unicode.Thai}, {unicode.Lao}, {unicode.Tibetan}, {unicode.Myanmar}, {unicode.Khmer},
}

// prolonged is the mark for long vowels of both kana. It belongs to neither.
var prolonged = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x30fc, Hi: 0x30fc, Stride: 1}}}

// conjoining are the parts of Korean syllables. Those that remain after NFC are not
// modern Korean.
var conjoining = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x1100, Hi: 0x11ff, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xd7b0, Hi: 0xd7ff, Stride: 1},
}}

// maxMarks is the maximum number of combining marks after one letter (UTS #39, section
// 5.4).
const maxMarks = 4

// fold maps a character to the lower-case letter of its simple case variants (Unicode's
// simple case folding, independent of the locale). İ and ı have no variants.
func fold(r rune) rune {
	lower := unicode.ToLower(unicode.ToUpper(r))
	for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
		if c == lower {
			return lower
		}
	}
	return r
}

// foldText folds a text in NFC and returns it in NFC.
func foldText(s string) string { return norm.NFC.String(strings.Map(fold, s)) }

// unacceptable reports whether a non-ASCII character is not a letter or mark, or is one that
// normalisation replaces by another code point, so that the address would change.
func unacceptable(r rune) bool {
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

// validInternational checks a local part in NFC that has non-ASCII characters, none of them
// strange. The caller checks the ASCII characters.
func validInternational(local string) bool {
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

// toASCII reports whether a case mapping in any locale turns a letter into ASCII, as with
// İ, ı, ſ and the Kelvin sign.
func toASCII(r rune) bool {
	return unicode.ToLower(r) < 0x80 || unicode.ToUpper(r) < 0x80 || unicode.ToTitle(r) < 0x80 || fold(r) < 0x80
}

// oneScript reports whether the letters of a text are of one script. Marks without a
// script match every script.
func oneScript(s string) bool {
	for _, script := range scripts {
		if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.In(r, script...) && !anyScript(r) }) {
			return true
		}
	}
	return false
}

// anyScript reports whether a character can occur with every script.
func anyScript(r rune) bool {
	if r < 0x80 { // Latin's letters are in its table
		return !unicode.Is(unicode.Latin, r)
	}
	return unicode.Is(unicode.M, r) && unicode.Is(unicode.Inherited, r)
}
