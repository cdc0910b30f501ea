package pgstore

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/store"
)

// The fast reader of a session's proofs agrees with JSON: one proof as jsonb writes it,
// and every other value.
func TestProofsAreReadAsJSON(t *testing.T) {
	for _, raw := range []string{
		`[]`, `null`, `[{"method": "password", "timestamp": 1767323045}]`, `[{"method": "", "timestamp": 0}]`, `[{"method": "x", "timestamp": -7}]`,
		`[{"method": "a\"b", "timestamp": 1}]`, `[{"method": "a\\b", "timestamp": 1}]`, `[{"method": "ü", "timestamp": 1}]`, `[{"method": "\u00fc", "timestamp": 1}]`,
		`[{"method": "a", "timestamp": 1}, {"method": "b", "timestamp": 2}]`, `[{"method":"a","timestamp":1}]`, `[{"timestamp": 1, "method": "a"}]`,
		`[{"method": "a", "timestamp": 1.5}]`, `[{"method": "a", "timestamp": 1e3}]`, `[{"method": "a", "timestamp": "1"}]`, `[{"method": "a", "timestamp": 99999999999999999999}]`,
		`[{"method": "a", "timestamp": }]`, `[{"method": "a", "timestamp": 1}`, `[{"method": "a"}]`, `{}`, ``, `[{"method": "`, `[{"method": "a", "timestamp": 9223372036854775807}]`,
	} {
		got, err := parseProofs([]byte(raw))
		var want []store.AMR
		if wantErr := json.Unmarshal([]byte(raw), &want); (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v, %v", raw, got, err, want, wantErr)
		}
	}
}

// After a failure, events are not recorded for five seconds, or until a recording
// succeeds.
func TestTroubleIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr troubled
		if tr.now() {
			t.Error("in trouble from the beginning")
		}
		tr.begin()
		<-time.After(5*time.Second - 1) // of the bubble's own clock
		if !tr.now() {
			t.Error("forgotten early")
		}
		<-time.After(1)
		if tr.now() {
			t.Error("not forgotten")
		}
		tr.begin()
		if tr.end(); tr.now() {
			t.Error("it has no end")
		}
	})
}

// The documented promises about times hold.
func TestTimesAreAsDocumented(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := New(pool)
	if err != nil {
		t.Fatal(err)
	}
	if longer, err := New(pool, WithTimeout(1)); err != nil || longer.timeout != 1 {
		t.Error(err)
	}
	for what, row := range map[string]struct{ have, want time.Duration }{
		"a call":                        {s.timeout, 10 * time.Second},
		"a statement that was given up": {patience, time.Second},
		"an application's transaction":  {longest, 15 * time.Minute},
	} {
		if row.have != row.want {
			t.Errorf("%s: %v, want %v", what, row.have, row.want)
		}
	}
}

// The array of an import's roles has them unchanged.
func TestArraysAreWrittenAsPostgresReadsThem(t *testing.T) {
	for want, list := range map[string][]string{
		`{}`: nil, `{"a"}`: {"a"}, `{"a","b"}`: {"a", "b"}, `{""}`: {""}, `{"NULL"}`: {"NULL"}, `{"a\"b"}`: {`a"b`}, `{"a\\b"}`: {`a\b`}, `{"a,b}"}`: {"a,b}"}, "{\"\ufffd\"}": {"\xff"},
	} {
		if got := arrayText(list); got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
}
