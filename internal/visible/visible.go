// Package visible classifies the characters that are visible on a screen. Two texts that
// differ only in invisible characters look the same.
package visible

import (
	"strings"
	"unicode"
)

// blank are characters that draw nothing although their Unicode class is visible.
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

// Rune reports whether a character is visible: it is not a format character (category
// Cf), ignorable by default (fillers, the grapheme joiner, tags, variation selectors), or
// blank. Spaces and control characters count as visible here.
func Rune(r rune) bool {
	return r < 0x80 || !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank)
}

// Text removes invisible characters. It keeps a joiner between letters of a script that
// needs joiners, such as Persian and Sinhala, and the joiners and the variation selector of
// emoji.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !Rune(r) }) {
		return s
	}
	runes := []rune(s)
	kept := make([]rune, 0, len(runes))
	for i, r := range runes {
		var before, after rune
		if len(kept) > 0 {
			before = kept[len(kept)-1]
		}
		if i+1 < len(runes) {
			after = runes[i+1]
		}
		if Rune(r) || joins(before, r, after) {
			kept = append(kept, r)
		}
	}
	return string(kept)
}

const (
	zeroWidthJoiner = '\u200d'
	emojiStyle      = '\ufe0f' // variation selector 16: the symbol before it is an emoji
)

// joins reports whether an invisible character forms the ones around it.
func joins(before, r, after rune) bool {
	symbol := func(r rune) bool { return unicode.Is(unicode.So, r) }
	switch {
	case r == emojiStyle:
		return symbol(before)
	case r == zeroWidthJoiner && symbol(after):
		return symbol(before) || before == emojiStyle || unicode.Is(unicode.Sk, before) // a colour of skin
	}
	return unicode.Is(unicode.Join_Control, r) && needsJoiner(before) && needsJoiner(after)
}

// needsJoiner reports whether a letter or mark belongs to a script whose spelling needs
// joiners.
func needsJoiner(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M) && unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// Line returns a text as one visible line: without line breaks that could start a header,
// and without control or formatting characters that could disguise the text.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(Text(s)), " ")
}
