package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// What figures are of when only some of it is asked, and how much may be asked at once.
func TestSpansOfStats(t *testing.T) {
	o := newOffice(t, memstore.New())
	const day = 24 * time.Hour
	end := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		ago, to time.Duration // before end; to reaches beyond it
		by      store.Interval
		want    string // "" if it is refused
	}{
		"a day by the hour by default":         {0, 0, "", "hour 24h0m0s"},
		"a day by the hour":                    {0, 0, store.Hourly, "hour 24h0m0s"},
		"thirty days by the day":               {0, 0, store.Daily, "day 720h0m0s"},
		"the hour that the end is in":          {0, 90 * time.Minute, store.Hourly, "hour 24h0m0s"},
		"up to two days by the hour":           {2 * day, 0, "", "hour 48h0m0s"},
		"beyond them by the day":               {2*day + time.Second, 0, "", "day 72h0m0s"},
		"an hour":                              {time.Hour, 0, store.Hourly, "hour 1h0m0s"},
		"no time at all":                       {-time.Hour, 0, store.Hourly, ""},
		"as many days by the hour as there is": {31 * day, 0, store.Hourly, "hour 744h0m0s"},
		"too many by the hour":                 {31*day + time.Hour, 0, store.Hourly, ""},
		"as many days by the day as there is":  {400 * day, 0, store.Daily, "day 9600h0m0s"},
		"too many by the day":                  {401 * day, 0, store.Daily, ""},
		"by the week":                          {0, 0, "week", ""},
	} {
		p := admin.StatsParams{To: end.Add(c.to), Interval: c.by}
		if c.ago != 0 {
			p.From = end.Add(-c.ago)
		}
		s, err := o.adm.Stats(t.Context(), admin.System("test"), p)
		if c.want == "" {
			wantCode(t, err, auth.CodeValidationFailed)
			continue
		}
		if got := fmt.Sprint(s.Interval, " ", s.To.Sub(s.From)); err != nil || got != c.want || s.To.Before(p.To) || s.To.Sub(p.To) >= day {
			t.Errorf("%s: %s up to %v, %v; want %s", name, got, s.To, err, c.want)
		}
	}
}

// Names and lists have bounds, which the last that fits and the first that does not tell.
func TestBoundsOfKeys(t *testing.T) {
	o := newOffice(t, memstore.New())
	names := make([]string, 501)
	for i := range names {
		names[i] = fmt.Sprintf("no.such%d", i)
	}
	networks := make([]string, 101)
	for i := range networks {
		networks[i] = fmt.Sprintf("10.0.%d.0/24", i)
	}
	scopes := []string{admin.PermUsersRead}
	for name, c := range map[string]struct {
		p    admin.CreateKeyParams
		want string // "" if it will do
	}{
		"the longest name":      {admin.CreateKeyParams{Name: strings.Repeat("x", 100), Scopes: scopes}, ""},
		"a longer one":          {admin.CreateKeyParams{Name: strings.Repeat("x", 101), Scopes: scopes}, "100 bytes"},
		"the most networks":     {admin.CreateKeyParams{Name: "x", Scopes: scopes, Networks: networks[:100]}, ""},
		"one more":              {admin.CreateKeyParams{Name: "x", Scopes: scopes, Networks: networks}, "100"},
		"the most scopes":       {admin.CreateKeyParams{Name: "x", Scopes: names[:500]}, "no.such"}, // which are judged, then
		"one scope more":        {admin.CreateKeyParams{Name: "x", Scopes: names}, "more than 500"},
		"a longest environment": {admin.CreateKeyParams{Name: "x", Scopes: scopes, Environment: strings.Repeat("e", 16)}, ""},
		"a longer environment":  {admin.CreateKeyParams{Name: "x", Scopes: scopes, Environment: strings.Repeat("e", 17)}, "16"},
	} {
		_, err := o.adm.CreateKey(t.Context(), admin.System("test"), c.p)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantCode(t, err, auth.CodeValidationFailed)
		if said := fmt.Sprintf("%+v", err); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s, want %q", name, said, c.want)
		}
	}
}
