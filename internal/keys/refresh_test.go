package keys

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"
)

const sessionV7 = "01a1fb4c-2b13-7a71-806e-d67843451400"

func refreshToken(t testing.TB, r *Ring, id string, counter uint32) string {
	t.Helper()
	s, err := r.RefreshToken(id, counter)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Sessions may be imported, so any UUID is accepted.
func TestRefreshTokenRoundTrip(t *testing.T) {
	r := ring(t, "s")
	for _, id := range []string{
		sessionV7, "8f6d1c7e-5a0b-4c3d-9e2f-1a2b3c4d5e6f", "c232ab00-9414-11ec-b3c8-9f6bdeced846", "00000000-0000-0000-0000-000000000000",
		"ffffffff-ffff-ffff-ffff-ffffffffffff", "C232AB00-9414-11EC-B3C8-9F6BDECED846",
	} {
		for _, counter := range []uint32{0, 1, 1 << 31, math.MaxUint32} {
			got, n, ok := r.ParseRefreshToken(refreshToken(t, r, id, counter))
			if !ok || got != strings.ToLower(id) || n != counter {
				t.Errorf("%s, %d: %q, %d, %v", id, counter, got, n, ok)
			}
		}
	}
	for _, id := range []string{"", "s", sessionV7 + " ", "{" + sessionV7 + "}", "urn:uuid:" + sessionV7, strings.ReplaceAll(sessionV7, "-", ""), "x1a1fb4c-2b13-7a71-806e-d67843451400"} {
		if s, err := r.RefreshToken(id, 1); err == nil {
			t.Errorf("%q: %q", id, s)
		}
	}
}

func TestRefreshTokenRefuses(t *testing.T) {
	r := ring(t, "s")
	good := refreshToken(t, r, sessionV7, 7)
	raw := b64(t, good[3:])
	changed := func(at int) string {
		b := append([]byte(nil), raw...)
		b[at] ^= 1
		return "v1." + base64.RawURLEncoding.EncodeToString(b)
	}
	for name, s := range map[string]string{
		"empty":           "",
		"version alone":   "v1.",
		"another version": "v2." + good[3:],
		"no version":      good[3:],
		"another session": changed(0),
		"another counter": changed(19),
		"another MAC":     changed(len(raw) - 1),
		"cut short":       good[:len(good)-1],
		"a byte more":     good + "A",
		"padded":          good + "==",
		"other alphabet":  strings.NewReplacer("-", "+", "_", "/").Replace(good) + " ",
		"trailing bits":   flipLastBit(good),
		"line breaks":     "v1." + strings.Repeat("\n", len(good)-3),
		"some breaks":     good[:len(good)-8] + strings.Repeat("\r\n", 4),
		"other secret":    refreshToken(t, ring(t, "t"), sessionV7, 7),
	} {
		if id, n, ok := r.ParseRefreshToken(s); ok || id != "" || n != 0 {
			t.Errorf("%s: %q, %d, %v", name, id, n, ok)
		}
		if IsRefreshToken(s) != (len(s) == len(good) && s[:3] == good[:3]) {
			t.Errorf("%s: %v of another form", name, IsRefreshToken(s))
		}
	}
}

// flipLastBit changes an unused bit of the last base64 character.
func flipLastBit(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[i^1])
}

func TestRefreshTokenAfterRotation(t *testing.T) {
	old := refreshToken(t, ring(t, "a"), sessionV7, 7)
	rotated := ring(t, "b", "a")
	if _, n, ok := rotated.ParseRefreshToken(old); !ok || n != 7 {
		t.Error("the previous secret's token is refused")
	}
	renewed := refreshToken(t, rotated, sessionV7, 8)
	if _, _, ok := ring(t, "b").ParseRefreshToken(renewed); !ok {
		t.Error("a new token is not made under the current secret")
	}
	if _, _, ok := ring(t, "b").ParseRefreshToken(old); ok {
		t.Error("a dropped secret's token passes")
	}
}

func FuzzRefreshToken(f *testing.F) {
	r := ring(f, "s")
	good := refreshToken(f, r, sessionV7, 7)
	for _, s := range []string{good, good[:50], "v1.", "v2." + good[3:], good + "=", strings.ToUpper(good), "", "v1." + strings.Repeat("\n", len(good)-3)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, counter, ok := r.ParseRefreshToken(s)
		if ok && (s != refreshToken(t, r, id, counter) || s != good) {
			t.Errorf("%q is accepted", s)
		}
	})
}
