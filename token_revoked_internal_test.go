package auth

import (
	"testing"
	"time"
)

// A session's end is told by its id with its user's, and ends that session only.
// What is told of a user alone ends all sessions that began until then.
func TestDenylist(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const life = 10 * time.Minute
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		told  []Revocation
		ended []bool // of ada's first and second session, and of bob's
	}{
		"nothing":                          {nil, []bool{false, false, false}},
		"about nobody":                     {[]Revocation{{At: now}}, []bool{false, false, false}},
		"a session":                        {[]Revocation{{SessionID: "ada-1", At: now}}, []bool{true, false, false}},
		"a session of a user":              {[]Revocation{{SessionID: "ada-1", UserID: "ada", At: now}}, []bool{true, false, false}},
		"all of a user":                    {[]Revocation{{UserID: "ada", At: now}}, []bool{true, true, false}},
		"all that began before the second": {[]Revocation{{UserID: "ada", At: ago(2 * time.Minute)}}, []bool{true, false, false}},
		"told again, the newer first":      {[]Revocation{{UserID: "ada", At: now}, {UserID: "ada", At: ago(2 * time.Minute)}}, []bool{true, true, false}},
		"two":                              {[]Revocation{{SessionID: "ada-2", UserID: "ada", At: now}, {UserID: "bob", At: now}}, []bool{false, true, true}},
		"too long ago":                     {[]Revocation{{SessionID: "ada-1", UserID: "ada", At: ago(life)}, {UserID: "bob", At: ago(life)}}, []bool{false, false, false}},
		"just not too long ago":            {[]Revocation{{SessionID: "ada-1", UserID: "ada", At: ago(life - 1)}}, []bool{true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &denylist{now: func() time.Time { return now }, life: life, until: map[string]entry{}}
			for _, r := range test.told {
				d.add(r)
			}
			for i, c := range []Claims{
				{SessionID: "ada-1", UserID: "ada", IssuedAt: ago(3 * time.Minute)},
				{SessionID: "ada-2", UserID: "ada", IssuedAt: ago(time.Minute)},
				{SessionID: "bob-1", UserID: "bob", IssuedAt: ago(time.Minute)},
			} {
				if got := d.ended(&c); got != test.ended[i] {
					t.Errorf("%s: ended %t", c.SessionID, got)
				}
			}
		})
	}
}

// What is over is forgotten.
func TestDenylistForgets(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &denylist{now: func() time.Time { return now }, life: time.Minute, until: map[string]entry{}}
	d.add(Revocation{SessionID: "first", At: now})
	now = now.Add(2 * time.Minute)
	d.add(Revocation{SessionID: "second", At: now})
	if _, ok := d.until["second"]; !ok || len(d.until) != 1 {
		t.Errorf("%v", d.until)
	}
}
