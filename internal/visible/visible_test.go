package visible

import (
	"testing"
	"unicode/utf8"
)

func TestRune(t *testing.T) {
	for _, r := range []rune{
		0x00ad, 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e,
		0x2060, 0x2061, 0x2064, 0x2065, 0x2066, 0x2069, 0x206f, 0x2800, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xfffb, 0xfffc,
		0x16fe4, 0x1bca0, 0x1d159, 0x1d173, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef, 0xe0fff,
	} {
		if Rune(r) {
			t.Errorf("%U shows", r)
		}
	}
	for _, r := range "aÄж漢क\u0308😀 \n\ufffd" {
		if !Rune(r) {
			t.Errorf("%U does not show", r)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Ada": "Ada", "A\u200bd\u00ada\ufeff": "Ada", "\u3164\u2800\u115f": "", "a\u034f\u0308": "a\u0308", "❤\ufe0f": "❤\ufe0f", "a\ufe0f": "a", "\ufe0f": "",
		"👩\u200d🚀": "👩\u200d🚀", "👩🏽\u200d⚕\ufe0f": "👩🏽\u200d⚕\ufe0f", "❤\ufe0f\u200d🔥": "❤\ufe0f\u200d🔥",
		"👩\u200d": "👩", "\u200d🚀": "🚀", "👩\u200da": "👩a", "a\u200d🚀": "a🚀", "👩\u200c🚀": "👩🚀", "👩\ufe0f\ufe0f": "👩\ufe0f", "👩\u200d\u200d🚀": "👩\u200d🚀",
		"Ada\U000e0041\U000e0042": "Ada", "A\u200dda": "Ada", "\u200dAda\u200c": "Ada",
		"می\u200cخواهم":        "می\u200cخواهم", // Persian
		"ශ\u0dca\u200dර\u0dd3": "ශ\u0dca\u200dර\u0dd3",
		"م\u200c\u200cم":       "م\u200cم", // the first one is not before a letter
		"م\u200c":              "م",
		"م\u200ca":             "مa", // not between two letters that join
		"a\u200cم":             "aم",
		"م\u200bم":             "مم", // not a joiner
		"१\u200d२":             "१२", // digits do not join
		"\xff\u200b":           "\ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
}

// No invisible characters remain except those that form letters and emoji, and a second
// pass changes nothing.
func FuzzText(f *testing.F) {
	for _, s := range []string{"Ada", "A\u200b", "می\u200cخ", "\u3164", "\U000e0041", "م\u200c\u200d\u200cم", "👩🏽\u200d⚕\ufe0f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if again := Text(got); again != got {
			t.Errorf("%+q became %+q, then %+q", s, got, again)
		}
		for i, r := range got {
			if Rune(r) {
				continue
			}
			before, _ := utf8.DecodeLastRuneInString(got[:i])
			after, _ := utf8.DecodeRuneInString(got[i+utf8.RuneLen(r):])
			if !joins(before, r, after) {
				t.Errorf("%+q keeps %U", got, r)
			}
		}
	})
}
