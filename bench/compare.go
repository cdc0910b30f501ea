package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/authmount/auth/internal/pgtest"
)

// bench is one run of the tool.
type bench struct {
	config
	cluster *pgtest.Server
	out     io.Writer
	servers []*process
}

func (b *bench) stop() {
	for _, p := range b.servers {
		p.stop()
	}
}

// server starts a server process that stops with this run.
func (b *bench) server(binary, mode, database string, args ...string) (*process, error) {
	p, err := start(binary, append([]string{"-serve", mode, "-database", database}, args...)...)
	if err == nil {
		b.servers = append(b.servers, p)
	}
	return p, err
}

func (b *bench) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// contender is measured in turns with the others of its comparison. The first one is the
// floor.
type contender struct {
	name string
	proc *process
	turn func(ctx context.Context, d time.Duration) (int, error)
	goal float64 // required ratio to the floor's throughput; 0: none

	perSecond, server, postgres []float64 // by round; CPU in ms per request
}

// usedUsers is the number of loaded users that are measured.
const (
	loadedUsers = 10_000
	usedUsers   = 512
)

// compare runs the selected measurements.
func (b *bench) compare(ctx context.Context) error {
	b.printf("%d rounds of %v for each contender\n", b.rounds, b.round)
	for _, hash := range []string{"bcrypt", "argon2id"} {
		if b.only == "" || b.only == hash {
			if err := b.comparePasswords(ctx, hash); err != nil {
				return fmt.Errorf("%s: %w", hash, err)
			}
		}
	}
	if b.only == "" || b.only == "me" || b.only == "refresh" {
		return b.compareSessions(ctx)
	}
	return nil
}

// comparePasswords compares login and sign-up with the bare hash in the same process,
// because the location of its memory makes a memory-hard hash faster or slower.
func (b *bench) comparePasswords(ctx context.Context, hash string) error {
	workers := cmp.Or(b.workers, 8)
	database, err := load(ctx, b.cluster, hash, hash, loadedUsers)
	if err != nil {
		return err
	}
	server, err := b.server("", "auth", database, "-hash", hash)
	if err != nil {
		return err
	}
	logins := all(usedUsers, loginRequest)
	return b.measure(ctx, "login and sign-up, "+hash, []*contender{
		{name: "bare hash", proc: server, turn: func(ctx context.Context, d time.Duration) (int, error) {
			n, err := server.get(ctx, fmt.Sprintf("/hashes?for=%v&workers=%d", d, workers))
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(string(n))
		}},
		{name: "login", proc: server, turn: asLoad(server.addr, repeaters(workers, logins)), goal: 0.97},
		{name: "sign-up", proc: server, turn: asLoad(server.addr, make([]newcomer, workers))},
	})
}

// compareSessions compares GET /me and POST /refresh with one SELECT and one UPDATE.
func (b *bench) compareSessions(ctx context.Context) error {
	database, err := load(ctx, b.cluster, "sessions", "bcrypt", loadedUsers)
	if err != nil {
		return err
	}
	server, err := b.server("", "auth", database)
	if err != nil {
		return err
	}
	// Each contender has its own sessions.
	tokens, refreshSize, meSize, err := signIn(ctx, server.addr, used(0, 0))
	if err != nil {
		return err
	}
	if err := loadFloor(ctx, database, usedUsers, meSize); err != nil {
		return err
	}
	var before *process
	if b.against != "" {
		if before, err = b.server(b.against, "auth", database); err != nil {
			return err
		}
	}
	counts := []int{1, 8, 32} // more concurrent requests share more statements
	if b.workers > 0 {
		counts = []int{b.workers}
	}
	for i, workers := range counts {
		c := sessionComparison{b, database, server, before, workers}
		if b.only != "refresh" {
			err = c.me(ctx, tokens, meSize)
		}
		if err == nil && b.only != "me" && (workers > 1 || b.workers == 1) { // one commit at a time measures the disk
			err = c.refresh(ctx, i*4*usedUsers, refreshSize)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sessionComparison compares with one number of workers.
type sessionComparison struct {
	*bench
	database     string
	ours, before *process
	workers      int
}

func (b sessionComparison) me(ctx context.Context, tokens []string, size int) error {
	selects, err := b.server("", "select", b.database, "-size", strconv.Itoa(size))
	if err != nil {
		return err
	}
	rows := all(usedUsers, func(i int) []byte { return request(nil, "GET", "/rows/"+sessionID(i, 0).String(), tokens[i], "") })
	mine := all(usedUsers, func(i int) []byte { return meRequest(tokens[i]) })
	list := []*contender{
		{name: "net/http + SELECT", proc: selects, turn: asLoad(selects.addr, repeaters(b.workers, rows))},
		{name: "GET /me", proc: b.ours, turn: asLoad(b.ours.addr, repeaters(b.workers, mine)), goal: 0.85},
	}
	if b.before != nil {
		list = append(list, &contender{name: "GET /me, other build", proc: b.before, turn: asLoad(b.before.addr, repeaters(b.workers, mine))})
	} else {
		empty, err := b.server("", "empty", "", "-size", strconv.Itoa(size))
		if err != nil {
			return err
		}
		list = append(list, &contender{name: "net/http alone", proc: empty, turn: asLoad(empty.addr, repeaters(b.workers, rows))})
	}
	if err := b.measure(ctx, fmt.Sprintf("me, %d requests at a time", b.workers), list); err != nil {
		return err
	}
	return b.writeProfiles(ctx, list[0], list[1])
}

// refresh uses sessions of four times as many users as the other measurements.
func (b sessionComparison) refresh(ctx context.Context, first, size int) error {
	updates, err := b.server("", "update", b.database, "-size", strconv.Itoa(size))
	if err != nil {
		return err
	}
	signing, err := b.server("", "update", b.database, "-sign", "-size", strconv.Itoa(size))
	if err != nil {
		return err
	}
	limited, err := b.server("", "auth", b.database, "-limits")
	if err != nil {
		return err
	}
	body := refreshBody(refreshToken(sessionID(0, 0)))
	rows := all(usedUsers, func(i int) []byte { return request(nil, "POST", "/rows/"+sessionID(i, 0).String(), "", body) })
	list := []*contender{
		{name: "net/http + UPDATE", proc: updates, turn: asLoad(updates.addr, repeaters(b.workers, rows))},
		{name: "POST /refresh", proc: b.ours, turn: asLoad(b.ours.addr, refreshers(b.workers, used(first, 1))), goal: 0.75},
	}
	if b.before != nil {
		list = append(list, &contender{name: "POST /refresh, other build", proc: b.before, turn: asLoad(b.before.addr, refreshers(b.workers, used(first+usedUsers, 1)))})
	}
	// Limits are per session, so there are enough sessions.
	many := slices.Concat(used(first, 2), used(first+usedUsers, 2), used(first+2*usedUsers, 2), used(first+3*usedUsers, 2))
	list = append(list, &contender{name: "POST /refresh, limits on", proc: limited, turn: asLoad(limited.addr, refreshers(b.workers, many))},
		&contender{name: "net/http + UPDATE + ES256", proc: signing, turn: asLoad(signing.addr, repeaters(b.workers, rows))})
	if err := b.measure(ctx, fmt.Sprintf("refresh, %d requests at a time", b.workers), list); err != nil {
		return err
	}
	return b.writeProfiles(ctx, list[0], list[1])
}

// measure alternates between the contenders and prints the result.
func (b *bench) measure(ctx context.Context, title string, list []*contender) error {
	postmaster := "" // on SQLite there is none
	if b.cluster != nil {
		pid, err := os.ReadFile(b.cluster.Dir + "/postmaster.pid") // the first line is the pid
		if err != nil {
			return err
		}
		postmaster, _, _ = strings.Cut(string(pid), "\n")
	}
	for _, c := range list { // connections, statements, caches
		if _, err := c.turn(ctx, b.round/3); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	turns := slices.Clone(list)
	for range b.rounds {
		for _, c := range turns {
			if err := c.measure(ctx, b.round, postmaster); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		slices.Reverse(turns) // vary the order
	}
	b.report(title, list)
	return nil
}

func (c *contender) measure(ctx context.Context, d time.Duration, postmaster string) error {
	pid := strconv.Itoa(c.proc.cmd.Process.Pid)
	server, err := cpuOf(pid)
	if err != nil {
		return err
	}
	postgres, err := cpuOfFamily(postmaster)
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := c.turn(ctx, d)
	took := time.Since(began)
	if err != nil {
		return err
	}
	serverAfter, err := cpuOf(pid)
	if err != nil {
		return err
	}
	postgresAfter, err := cpuOfFamily(postmaster)
	if err != nil {
		return err
	}
	per := func(cpu time.Duration) float64 { return cpu.Seconds() * 1000 / float64(max(n, 1)) }
	c.perSecond = append(c.perSecond, float64(n)/took.Seconds())
	c.server = append(c.server, per(serverAfter-server))
	c.postgres = append(c.postgres, per(postgresAfter-postgres))
	return nil
}

// report prints a table of medians. A ratio is the median of the ratios of the rounds.
func (b *bench) report(title string, list []*contender) {
	b.printf("\n%s\n\n| | requests/s | ms CPU, server | ms CPU, Postgres | of the floor's CPU | of the floor's throughput | goal |\n|---|---|---|---|---|---|---|\n", title)
	for i, c := range list {
		cpu, ratio, goal := "", "", ""
		if i > 0 {
			floor := list[0]
			cpu = fmt.Sprintf("%.2f", median(all(b.rounds, func(r int) float64 { return (c.server[r] + c.postgres[r]) / (floor.server[r] + floor.postgres[r]) })))
			ratios := all(b.rounds, func(r int) float64 { return c.perSecond[r] / floor.perSecond[r] })
			ratio = fmt.Sprintf("%.3f (%.3f–%.3f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
		}
		if c.goal > 0 {
			goal = fmt.Sprintf("%.2f", c.goal)
		}
		b.printf("| %s | %.0f | %.3f | %.3f | %s | %s | %s |\n", c.name, median(c.perSecond), median(c.server), median(c.postgres), cpu, ratio, goal)
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// writeProfiles profiles the running servers of a floor and of the contender that is
// measured against it.
func (b *bench) writeProfiles(ctx context.Context, floor, c *contender) error {
	if b.profile == "" {
		return nil
	}
	return errors.Join(writeProfile(ctx, floor, b.profile+".floor"), writeProfile(ctx, c, b.profile))
}

func writeProfile(ctx context.Context, c *contender, file string) error {
	profile := make(chan error, 1)
	go func() {
		raw, err := c.proc.get(ctx, "/debug/pprof/profile?seconds=10")
		if err == nil {
			err = os.WriteFile(file, raw, 0o600)
		}
		profile <- err
	}()
	if _, err := c.turn(ctx, 11*time.Second); err != nil {
		return err
	}
	return <-profile
}
