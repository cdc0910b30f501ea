package address

import (
	"errors"
	"strings"
	"testing"
)

func TestNormalizeEmail(t *testing.T) {
	for in, want := range map[string]string{
		"ada@example.com": "ada@example.com", "Ada@EXAMPLE.Com": "Ada@example.com", " ada@example.com ": "ada@example.com",
		"ada+tag@example.com": "ada+tag@example.com", "ada@bücher.example": "ada@xn--bcher-kva.example", "jo\u0308rg@example.com": "jörg@example.com",
		"o'neill@example.com": "o'neill@example.com", strings.Repeat("a", 64) + "@example.com": strings.Repeat("a", 64) + "@example.com",
		"ada@" + strings.Repeat("a", 63) + ".com": "ada@" + strings.Repeat("a", 63) + ".com",
		"": "", "ada": "", "ada@": "", "@example.com": "", "ada@localhost": "", "ada@example": "", "ada@example.com.": "", "a@b@example.com": "",
		"a,b@example.com": "", "ada@example.com,eve@example.com": "", "Ada <ada@example.com>": "", "<ada@example.com>": "", `"a b"@example.com`: "",
		"ada@[192.0.2.1]": "", ".ada@example.com": "", "ada.@example.com": "", "a..b@example.com": "", "ada@exa mple.com": "", "ada\n@example.com": "", "ada@example.com\r\nBcc: x": "",
		"a\u202eda@example.com": "", "a\u200bda@example.com": "", "ada@-example.com": "", "ada@exa_mple.com": "", strings.Repeat("a", 65) + "@example.com": "",
		"ada@" + strings.Repeat("a.", 130) + "com": "", "ada@" + strings.Repeat("a", 64) + ".com": "", "ada(comment)@example.com": "", "\xff@example.com": "", "ada@example..com": "",
	} {
		got, err := NormalizeEmail(in)
		if got != want || (want == "") != errors.Is(err, ErrEmail) || (want != "" && err != nil) {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestEmailKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Ada@Example.com", "ada@example.COM", true},
		{"jo\u0308rg@example.com", "JÖRG@example.com", true},
		{"a@example.com", "b@example.com", false},
		{"a.b@example.com", "ab@example.com", false},
		{"a+x@example.com", "a@example.com", false},
	} {
		if (EmailKey(c.a) == EmailKey(c.b)) != c.same {
			t.Errorf("%q and %q: %q and %q", c.a, c.b, EmailKey(c.a), EmailKey(c.b))
		}
	}
}

func TestNormalizePhone(t *testing.T) {
	for in, want := range map[string]string{
		"+4930123456": "+4930123456", " +49 (30) 123-456 ": "+4930123456", "+1.202/555\u00a00123": "+12025550123", "+1234567": "+1234567", "+123456789012345": "+123456789012345",
		"": "", "+": "", "030123456": "", "004930123456": "", "+0301234567": "", "+123456": "", "+1234567890123456": "", "+49a30123456": "", "++4930123456": "", "+49+30123456": "",
		"+４９30123456": "+4930123456", "＋4930123456": "+4930123456", "+٤٩٣٠١٢٣٤٥٦": "+4930123456", "+۴۹۳۰۱۲۳۴۵۶": "+4930123456", "+49३0123456": "+4930123456", "+49\u200b30123456": "+4930123456",
		"\u202a+49 30 123456\u202c": "+4930123456", "\u200e+49\u202f30\u2009123\u2011456": "+4930123456", "+49 30 12–34–56": "+4930123456", "+𝟒𝟗30123456": "+4930123456",
		"+49 (0)151 23456": "+4915123456", "+49(0) 151 23456": "+4915123456", "+49-(0)-151-23456": "+4915123456", "+٤٩ (٠)151 23456": "+4915123456", "+49 151 23456": "+4915123456", "+420 (0)2345678": "+4202345678",
		"+39 (0)6 69812345": "+390669812345", "+39 06 69812345": "+390669812345", "+225 (0)7 01234567": "+2250701234567", "+49 (01)51 23456": "+49015123456", "+49151 (0)23456": "+49151023456",
		"+49 30\n123456": "", "(0)4930123456": "", "+(0)4930123456": "", "00+4930123456": "", "+04930123456": "", "+49¹30123456": "",
		"+4930123456\n+1": "", "+4930123456;ext=1": "",
	} {
		got, err := NormalizePhone(in)
		if got != want || (want == "") != errors.Is(err, ErrPhone) || (want != "" && err != nil) {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]struct{ email, any string }{
		"ada@example.com": {"a•••a@e•••e.com", "a•••a@e•••e.com"},
		"a@b.de":          {"a•••@b•••.de", "a•••@b•••.de"},
		"ab@x.co.uk":      {"a•••@x•••o.uk", "a•••@x•••o.uk"},
		"jörg@ümlaut.de":  {"j•••g@ü•••t.de", "j•••g@ü•••t.de"},
		"@":               {"@", "@"},
		"":                {"", "•••"},
		"+4930123456":     {"", "•••56"},
		"7":               {"", "•••7"},
	} {
		if got := MaskEmail(in); got != want.email {
			t.Errorf("e-mail %q: %q, want %q", in, got, want.email)
		}
		if got := Mask(in); got != want.any {
			t.Errorf("%q: %q, want %q", in, got, want.any)
		}
	}
}

func FuzzNormalizeEmail(f *testing.F) {
	for _, s := range []string{"ada@example.com", "Ada@BÜCHER.example", "a,b@example.com", "\"x\"@example.com", "a@b@c.de", "a\u202e@example.com", "ſ@example.com", "K@example.com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := NormalizeEmail(s)
		if err != nil {
			return
		}
		if again, err := NormalizeEmail(n); err != nil || again != n {
			t.Errorf("%q became %q, then %q (%v)", s, n, again, err)
		}
		if strings.Count(n, "@") != 1 || strings.ContainsAny(n, "\r\n,;<> \x00") {
			t.Errorf("%q became %q", s, n)
		}
		if k := EmailKey(n); EmailKey(k) != k {
			t.Errorf("the key of %q is not stable", n)
		}
	})
}

func FuzzNormalizePhone(f *testing.F) {
	for _, s := range []string{"+4930123456", "+49 (30) 123-456", "0301", "+", "\u00a0+1", "＋4930123456", "+٤٩٣٠١٢٣٤٥٦"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := NormalizePhone(s)
		if err != nil {
			return
		}
		if again, err := NormalizePhone(n); err != nil || again != n || len(n) > 16 || strings.Trim(n, "+0123456789") != "" {
			t.Errorf("%q became %q, then %q (%v)", s, n, again, err)
		}
	})
}
