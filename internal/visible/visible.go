// Package visible knows which characters show on a screen. Two texts that
// differ only in others look the same to whoever reads them.
package visible

import (
	"strings"
	"unicode"
)

// blank are characters that draw nothing although Unicode classes them with
// those that do.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2065, Hi: 0x2065, Stride: 1}, // reserved, ignorable by default
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille pattern without dots
		{Lo: 0xfff0, Hi: 0xfffc, Stride: 1}, // reserved, annotations, object replacement
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // Khitan filler
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // musical null note head
	},
}

// Rune tells whether a character shows: whether it is neither a format
// character (category Cf), nor ignorable by default (fillers, the grapheme
// joiner, tags, variation selectors), nor blank. Spaces and control characters
// are not judged here and count as visible.
func Rune(r rune) bool {
	return r < 0x80 || !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank)
}

// Text leaves out what does not show. A joiner stays between letters of one of
// the scripts that are written with it, such as Persian and Sinhala.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !Rune(r) }) {
		return s
	}
	runes := []rune(s)
	kept := make([]rune, 0, len(runes))
	for i, r := range runes {
		if Rune(r) || (unicode.Is(unicode.Join_Control, r) && len(kept) > 0 && i+1 < len(runes) && joins(kept[len(kept)-1]) && joins(runes[i+1])) {
			kept = append(kept, r)
		}
	}
	return string(kept)
}

// joins tells whether a letter or mark belongs to a script whose spelling needs
// joiners.
func joins(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M) && unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// Line keeps one line of visible text: no line breaks that could start a
// header, no control or formatting characters that could disguise.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case !Rune(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
