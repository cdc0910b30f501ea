package apikey

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func made(t testing.TB, p Parts) string {
	t.Helper()
	text, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, id := range []string{uuid.Nil.String(), uuid.Max.String(), uuid.NewString()} {
		for _, p := range []Parts{{false, "live", id}, {true, "test", id}, {false, "0123456789abcdef", id}} {
			text := made(t, p)
			if got, ok := Parse(text); !ok || got != p {
				t.Errorf("%q: %+v, %v", text, got, ok)
			}
			if !Is(text, Hash(text)) || Is(text+"x", Hash(text)) || Is(text, nil) {
				t.Errorf("%q is not what its hash is of", text)
			}
			if seen[text] || text == made(t, p) {
				t.Errorf("%q twice", text)
			}
			seen[text] = true
		}
	}
	for _, p := range []Parts{{ID: "x", Environment: "live"}, {ID: uuid.NewString()}, {ID: uuid.NewString(), Environment: "Live"}} {
		if text, err := New(p); err == nil {
			t.Errorf("%+v: %q", p, text)
		}
	}
}

// A key with any one changed character is invalid.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	text := made(t, Parts{Environment: "live", ID: uuid.NewString()})
	for i := range text {
		for _, c := range []byte{'0', 'Z', '_', '+', ' ', 0x80} {
			if other := text[:i] + string([]byte{c}) + text[i+1:]; other != text {
				if p, ok := Parse(other); ok {
					t.Errorf("%q, changed at %d, is %+v", other, i, p)
				}
			}
		}
	}
	for _, other := range []string{"", "sk_", "pk_live", "sk_live_", text + "0", text[1:], strings.ToUpper(text), "sk__" + text[8:], "sk_" + strings.Repeat("a", 17) + text[7:]} {
		if p, ok := Parse(other); ok {
			t.Errorf("%q is %+v", other, p)
		}
	}
}

// Anyone can compute a checksum: it does not make other formats valid.
func TestChecksumAloneMakesNoKey(t *testing.T) {
	t.Parallel()
	text := made(t, Parts{Environment: "live", ID: uuid.NewString()})
	id, random := text[8:8+idDigits], text[9+idDigits:9+idDigits+randomDigits]
	for body, want := range map[string]bool{
		"sk_live_" + id + "_" + random: true,
		"xk_live_" + id + "_" + random: false, "live_" + id + "_" + random: false, "sk_Live_" + id + "_" + random: false, "sk__" + id + "_" + random: false,
		"sk_live_" + strings.Repeat("Z", idDigits) + "_" + random: false, "sk_live_" + id[1:] + "_" + random: false,
		"sk_live_" + id + "_" + strings.Repeat("Z", randomDigits): false, "sk_live_" + id + "_" + random[1:]: false, "sk_live_" + id + "_-" + random[1:]: false,
	} {
		if p, ok := Parse(body + checksum(body)); ok != want || (!ok && p != Parts{}) {
			t.Errorf("%q: %+v, %v", body, p, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(made(f, Parts{Environment: "live", ID: uuid.NewString()}))
	f.Add("pk_a_b_c")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := Parse(text); ok && (uuid.Validate(p.ID) != nil || !IsEnvironment(p.Environment)) {
			t.Errorf("%q: %+v", text, p)
		}
	})
}

// number accepts only the form that digits wrote.
func TestNumber(t *testing.T) {
	t.Parallel()
	written := digits([]byte{1, 2, 3}, 5)
	if b, ok := number(written, 5, 3); !ok || string(b) != "\x01\x02\x03" {
		t.Errorf("%q is %v, %v", written, b, ok)
	}
	if b, ok := number(digits([]byte{255, 255, 255}, 5), 5, 3); !ok || string(b) != "\xff\xff\xff" {
		t.Errorf("the largest is %v, %v", b, ok)
	}
	for _, s := range []string{digits([]byte{1, 0, 0, 0}, 5), "", written + "0", written[1:], "-" + written[1:], "+" + written[1:], "_" + written[1:], "zzzzz"} {
		if b, ok := number(s, 5, 3); ok || b != nil {
			t.Errorf("%q is %v, %v", s, b, ok)
		}
	}
}
