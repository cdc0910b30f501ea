package keys

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// Codes survive a rotation: the stored MAC under the previous secret is among the
// candidates.
func TestCodesOutliveARotation(t *testing.T) {
	size := map[string]int{"phone": 32, "recovery": IDSize + 32}
	for name, macs := range map[string]func(*Ring) [][]byte{
		"phone":    func(r *Ring) [][]byte { return r.PhoneCode("login", "+431234567", "123456") },
		"recovery": func(r *Ring) [][]byte { return r.RecoveryCode("u", "abcde-fghjk") },
	} {
		before, rotated, done := macs(ring(t, "a")), macs(ring(t, "b", "a")), macs(ring(t, "b"))
		if len(before) != 1 || len(rotated) != 2 || len(done) != 1 || len(before[0]) != size[name] {
			t.Fatalf("%s: %d, %d, %d MACs", name, len(before), len(rotated), len(done))
		}
		if !bytes.Equal(rotated[1], before[0]) {
			t.Errorf("%s: the previous secret's is not the second", name)
		}
		if !bytes.Equal(rotated[0], done[0]) {
			t.Errorf("%s: the current secret's is not the first", name)
		}
		if bytes.Equal(rotated[0], rotated[1]) {
			t.Errorf("%s: both secrets make the same", name)
		}
	}
}

func TestPhoneCodesAreBound(t *testing.T) {
	r, seen := ring(t, "a"), map[string][]string{}
	for _, parts := range [][]string{
		{"login", "+431234567", "123456"}, {"change", "+431234567", "123456"}, {"login", "+431234568", "123456"}, {"login", "+431234567", "123457"},
		{"login+", "431234567", "123456"}, {"login", "+43123456", "7123456"}, {"login", "+431234567\x00", "123456"}, {"login", "+431234567", "\x00123456"},
		{"", "", ""}, {"\x00", "", ""},
	} {
		m := string(r.PhoneCode(parts[0], parts[1], parts[2])[0])
		if seen[m] != nil {
			t.Errorf("%q and %q are the same", seen[m], parts)
		}
		seen[m] = parts
	}
}

func TestMailCodesAreBound(t *testing.T) {
	r := ring(t, "a")
	parts := [5]string{"login", "u", "ada@example.com", "challenge", "123456"}
	code := func(p [5]string) string { return string(r.MailCode(p[0], p[1], p[2], p[3], p[4])[0]) }
	for i := range parts {
		other := parts
		other[i] += "x"
		if code(other) == code(parts) {
			t.Errorf("%q does not count", parts[i])
		}
	}
}

func TestRecoveryCodes(t *testing.T) {
	r := ring(t, "a")
	want := r.RecoveryCode("u", "abcde-fghjk")[0]
	for _, same := range []string{"abcdefghjk", "ABCDE-FGHJK", "abcde fghjk", " abcde - fghjk ", "a-b-c-d-e-f-g-h-j-k"} {
		if got := r.RecoveryCode("u", same)[0]; !bytes.Equal(got, want) {
			t.Errorf("%q is another code", same)
		}
	}
	for _, other := range [][2]string{{"v", "abcde-fghjk"}, {"u", "abcde-fghjm"}, {"u", ""}, {"ua", "bcde-fghjk"}, {"u", "abcde_fghjk"}} {
		if got := r.RecoveryCode(other[0], other[1])[0]; bytes.Equal(got, want) {
			t.Errorf("%q is the same code", other)
		}
	}
}

// A bucket's key names the limit but not the value.
func TestRateLimit(t *testing.T) {
	r, seen := ring(t, "a", "b"), []string{}
	for _, c := range [][2]string{{"login", "ada@example.com"}, {"login", "eve@example.com"}, {"signup", "ada@example.com"}, {"login", ""}} {
		key := r.RateLimit(c[0], c[1])
		limit, hidden, _ := strings.Cut(key, ":")
		if limit != c[0] || len(b64(t, hidden)) != 16 || strings.Contains(key, "@") || slices.Contains(seen, hidden) {
			t.Errorf("%q: %s", c, key)
		}
		// The oldest configured secret makes the keys, so that a rotation does not change them.
		if again := ring(t, "b").RateLimit(c[0], c[1]); again != key {
			t.Errorf("%q: %s in another instance, and before the rotation", c, again)
		}
		if other := ring(t, "a").RateLimit(c[0], c[1]); other == key {
			t.Errorf("%q: the same under another secret", c)
		}
		seen = append(seen, hidden)
	}
}

// A request id is valid for its subject, until its time, through a rotation, and only in
// the canonical encoding.
func TestRequests(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	r := ring(t, "a")
	id := r.RequestID("+4930", at)
	if id == r.RequestID("+4930", at) {
		t.Error("the same twice")
	}
	before := at.Add(-time.Second)
	for name, c := range map[string]struct {
		r     *Ring
		about string
		id    string
		now   time.Time
		want  bool
	}{
		"good":                {r, "+4930", id, before, true},
		"after a rotation":    {ring(t, "b", "a"), "+4930", id, before, true},
		"of another service":  {ring(t, "b"), "+4930", id, before, false},
		"about somebody else": {r, "+4931", id, before, false},
		"over":                {r, "+4930", id, at, false},
		"none":                {r, "+4930", "", before, false},
		"another spelling":    {r, "+4930", id[:20] + "\n" + id[20:], before, false},
		"the last bits set":   {r, "+4930", id[:len(id)-1] + string(id[len(id)-1]+1), before, false},
		"changed":             {r, "+4930", "A" + id[1:], before, id[0] == 'A'},
		"longer":              {r, "+4930", id + "AA", before, false},
		"no base64":           {r, "+4930", strings.Repeat("!", len(id)), before, false},
		"zeros":               {r, "+4930", strings.Repeat("A", len(id)), before, false},
	} {
		if got := c.r.ValidRequestID(c.about, c.id, c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
