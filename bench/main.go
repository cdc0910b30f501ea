// Bench measures Authmount on Postgres, over HTTP and in a separate process, against
// floors: the least that a server could do for the same response. The contenders of a
// comparison alternate in short rounds, so that other load on the machine affects them
// equally; the result is the ratio. See README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/authmount/auth/internal/pgtest"
)

// config are the flags.
type config struct {
	// Measurements.
	growth  bool
	admin   bool
	moving  bool
	sqlite  bool
	only    string
	rounds  int
	round   time.Duration
	workers int
	profile string
	against string

	// Options of a server process.
	serve    string
	database string
	hash     string
	limits   bool
	hs256    bool
	sign     bool
	size     int
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// check rejects flags that would measure something unintended.
func (c config) check() error {
	sessions := c.only == "me" || c.only == "refresh"
	switch {
	case !sessions && !slices.Contains([]string{"", "bcrypt", "argon2id"}, c.only):
		return fmt.Errorf("-only: unknown measurement %q", c.only)
	case c.workers < 0 || c.workers > usedUsers:
		return fmt.Errorf("-workers: between 1 and %d", usedUsers)
	case c.profile != "" && !sessions:
		return errors.New("-profile: needs -only me or -only refresh")
	case (c.growth || c.admin || c.moving) && (c.only != "" || c.against != ""):
		return errors.New("-growth and -admin measure everything, and only one build")
	}
	return nil
}

func run() error {
	var c config
	flag.BoolVar(&c.growth, "growth", false, "measure how cost grows with the number of users")
	flag.BoolVar(&c.admin, "admin", false, "compare the admin endpoints for a million users with bare queries")
	flag.BoolVar(&c.moving, "transfer", false, "compare imports and exports with bare COPYs")
	flag.BoolVar(&c.sqlite, "sqlite", false, "compare /me and /refresh on SQLite with bare statements")
	flag.StringVar(&c.only, "only", "", "measure only this: me, refresh, bcrypt or argon2id")
	flag.IntVar(&c.rounds, "rounds", 0, "rounds of each comparison (default 7, with -growth 25)")
	flag.DurationVar(&c.round, "round", 0, "length of a contender's turn (default 3s, with -growth 500ms)")
	flag.IntVar(&c.workers, "workers", 0, "requests at a time (default 8; /me and /refresh with 32, too, and /me with 1)")
	flag.StringVar(&c.profile, "profile", "", "with -only me or refresh: write a CPU profile of the server to this file afterwards, and one of the floor to this name with .floor")
	flag.StringVar(&c.against, "against", "", "another build of this tool, to compare its /me and /refresh")
	flag.StringVar(&c.serve, "serve", "", "run as a server: auth, select, update or empty (started by the tool)")
	flag.StringVar(&c.database, "database", "", "with -serve: connection string, or the path of a SQLite file")
	flag.StringVar(&c.hash, "hash", "bcrypt", "with -serve: bcrypt or argon2id")
	flag.BoolVar(&c.limits, "limits", false, "with -serve auth: use the default rate limits")
	flag.BoolVar(&c.hs256, "hs256", false, "with -serve auth: sign access tokens with HS256, so that the tool can create them")
	flag.BoolVar(&c.sign, "sign", false, "with -serve update: also make an ES256 signature, as for an access token")
	flag.IntVar(&c.size, "size", 0, "with -serve: length of the response")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if c.serve != "" {
		return serve(c)
	}
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.sqlite {
		b := &bench{config: c, out: os.Stdout}
		defer b.stop()
		b.rounds, b.round = cmp.Or(c.rounds, 7), cmp.Or(c.round, 3*time.Second)
		return b.compareSQLite(ctx)
	}
	// Default durability: a commit waits for the disk.
	settings := []string{"max_connections=100"}
	if c.growth || c.admin {
		settings = append(settings, "shared_buffers=2GB", "max_wal_size=4GB")
	}
	cluster, err := pgtest.Start(settings...)
	if err != nil {
		return err
	}
	defer cluster.Remove()
	b := &bench{config: c, cluster: cluster, out: os.Stdout}
	defer b.stop()
	if c.growth { // requests are short, and many short turns average out the noise of the machine
		b.rounds, b.round = cmp.Or(c.rounds, 25), cmp.Or(c.round, 500*time.Millisecond)
		err = b.measureGrowth(ctx)
	} else if c.admin {
		b.rounds, b.round = cmp.Or(c.rounds, 15), cmp.Or(c.round, 200*time.Millisecond)
		err = b.measureAdmin(ctx)
	} else if c.moving {
		b.rounds = cmp.Or(c.rounds, 5)
		err = b.measureTransfers(ctx)
	} else {
		b.rounds, b.round = cmp.Or(c.rounds, 7), cmp.Or(c.round, 3*time.Second)
		err = b.compare(ctx)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
