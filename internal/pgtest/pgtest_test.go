package pgtest

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestNewestFirst(t *testing.T) {
	want := []string{"/opt/homebrew/opt/postgresql/bin", "/usr/lib/postgresql/17/bin", "/usr/pgsql-16/bin", "/opt/homebrew/opt/postgresql@15/bin", "/usr/lib/postgresql/9.6/bin", "/usr/pgsql-9.5/bin"}
	got := slices.Sorted(slices.Values(want))
	sortNewestFirst(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// InDatabase keeps the password and the encryption of an existing server.
func TestInDatabase(t *testing.T) {
	for _, url := range []string{"postgres://ada@db.test/x?sslmode=disable", `postgres://ada:a%27%5Cb@db.test:5433/x?sslmode=require`} {
		cfg, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.ParseConfig(InDatabase(cfg, "y"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != cfg.Host || got.Port != cfg.Port || got.User != cfg.User || got.Password != cfg.Password || got.Database != "y" || (got.TLSConfig == nil) != (cfg.TLSConfig == nil) {
			t.Errorf("%s became %s", url, got.ConnString())
		}
	}
}
