package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/authmount/auth"
	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

// compareSQLite is compareSessions on SQLite files. Each contender that changes rows has a file
// of its own with the same content.
func (b *bench) compareSQLite(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of a measurement
	ours, floor := filepath.Join(dir, "auth.db"), filepath.Join(dir, "floor.db")
	users := 12 * usedUsers
	if err := loadSQLite(ctx, ours, users); err != nil {
		return err
	}
	server, err := b.server("", "auth", ours)
	if err != nil {
		return err
	}
	tokens, refreshSize, meSize, err := signIn(ctx, server.addr, used(0, 0))
	if err != nil {
		return err
	}
	if err := loadSQLiteFloor(ctx, floor, ours, meSize); err != nil {
		return err
	}
	counts := []int{1, 8, 32}
	if b.workers > 0 {
		counts = []int{b.workers}
	}
	for i, workers := range counts {
		if b.only != "refresh" {
			if err := b.meOnSQLite(ctx, server, floor, tokens, meSize, workers); err != nil {
				return err
			}
		}
		if b.only != "me" {
			if err := b.refreshOnSQLite(ctx, server, ours, floor, i*4*usedUsers, refreshSize, workers); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) meOnSQLite(ctx context.Context, ours *process, floor string, tokens []string, size, workers int) error {
	selects, err := b.server("", "select", floor, "-size", strconv.Itoa(size))
	if err != nil {
		return err
	}
	rows := all(usedUsers, func(i int) []byte { return request(nil, "GET", "/rows/"+sessionID(i, 0).String(), tokens[i], "") })
	mine := all(usedUsers, func(i int) []byte { return meRequest(tokens[i]) })
	return b.measureBoth(ctx, fmt.Sprintf("me on SQLite, %d requests at a time", workers), []*contender{
		{name: "net/http + SELECT", proc: selects, turn: asLoad(selects.addr, repeaters(workers, rows))},
		{name: "GET /me", proc: ours, turn: asLoad(ours.addr, repeaters(workers, mine)), goal: 0.85},
	})
}

func (b *bench) refreshOnSQLite(ctx context.Context, server *process, ours, floor string, first, size, workers int) error {
	updates, err := b.server("", "update", floor, "-size", strconv.Itoa(size))
	if err != nil {
		return err
	}
	limited, err := b.server("", "auth", ours, "-limits")
	if err != nil {
		return err
	}
	// Limits are per session, so there are enough sessions.
	many := slices.Concat(used(first, 2), used(first+usedUsers, 2), used(first+2*usedUsers, 2), used(first+3*usedUsers, 2))
	refreshes := asLoad(limited.addr, refreshers(workers, many))
	body := refreshBody(refreshToken(sessionID(0, 0)))
	rows := all(usedUsers, func(i int) []byte { return request(nil, "POST", "/rows/"+sessionID(i, 0).String(), "", body) })
	goal := 0.9
	if workers == 1 {
		goal = 0.5
	}
	return b.measureBoth(ctx, fmt.Sprintf("refresh on SQLite, %d requests at a time", workers), []*contender{
		{name: "net/http + UPDATE", proc: updates, turn: asLoad(updates.addr, repeaters(workers, rows))},
		{name: "POST /refresh", proc: server, turn: asLoad(server.addr, refreshers(workers, used(first, 1))), goal: goal},
		{name: "POST /refresh, limits on", proc: limited, turn: refreshes},
		{name: "POST /refresh, beside requests that the limits refuse", proc: limited, turn: func(ctx context.Context, d time.Duration) (int, error) {
			flood, stop := context.WithCancel(ctx)
			var wg sync.WaitGroup
			wg.Go(func() { refuse(flood, limited.addr) })
			defer wg.Wait()
			defer stop()
			return refreshes(ctx, d)
		}},
	})
}

func (b *bench) measureBoth(ctx context.Context, title string, list []*contender) error {
	if err := b.measure(ctx, title, list); err != nil {
		return err
	}
	return b.writeProfiles(ctx, list[0], list[1])
}

// refuse requests mail to one address from eight connections, most of which the limits refuse.
func refuse(ctx context.Context, addr string) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+prefix+"/forgot-password", strings.NewReader(`{"email":"nobody@example.com"}`))
				if err != nil {
					panic(err) // the address is of a server that runs
				}
				req.Header.Set("Content-Type", "application/json")
				if res, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			}
		})
	}
	wg.Wait()
}

// loadSQLite creates a file with users that have a session each of sessionsEach.
func loadSQLite(ctx context.Context, path string, users int) error {
	s, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	encoded, err := makeHash("bcrypt")
	if err != nil {
		return err
	}
	now := time.Now().Add(-time.Hour)
	change := store.Change{Now: now, By: auth.Authority{System: "bench"}}
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < users; i += 8 {
				_, err := s.CreateUser(ctx, store.CreateUser{Change: change, NewUser: store.NewUser{
					User:         store.User{ID: userID(i).String(), Email: email(i), EmailVerifiedAt: now, FullName: fmt.Sprintf("User %d", i), CreatedAt: now, UpdatedAt: now},
					PasswordHash: encoded,
				}})
				for n := range sessionsEach {
					if err == nil {
						_, err = s.CreateSession(ctx, store.CreateSession{Change: change, NewSession: store.NewSession{Session: auth.Session{
							ID: sessionID(i, n).String(), UserID: userID(i).String(), AAL: store.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: now.Unix()}},
							CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(720 * time.Hour), IP: "127.0.0.1", UserAgent: userAgent,
						}}})
					}
				}
				if err != nil {
					select {
					case failed <- err:
					default:
					}
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return err
	}
	return s.Close()
}

// loadSQLiteFloor creates a file with the sessions of another one, and documents of a length.
func loadSQLiteFloor(ctx context.Context, path, like string, size int) error {
	db, err := openSQLite(like, 1)
	if err == nil {
		_, err = db.ExecContext(ctx, "vacuum into ?", path)
	}
	if err != nil {
		return err
	}
	_ = db.Close()
	if db, err = openSQLite(path, 1); err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // of a measurement
	if _, err := db.ExecContext(ctx, "create table documents (id text primary key, body text not null) strict"); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "insert into documents select id, ? from auth_sessions", string(bytes.Repeat([]byte("x"), size)))
	return err
}

// openSQLite opens a file as sqlitestore does, with the same durability.
func openSQLite(path string, connections int) (*sql.DB, error) {
	db, err := driver.Open("file:"+(&url.URL{Path: path}).EscapedPath(), func(c *sqlite3.Conn) error {
		return c.Exec("pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 10000")
	})
	if err == nil {
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
	}
	return db, err
}

// isSQLite reports whether a server's database is a file.
func isSQLite(database string) bool { return strings.HasPrefix(database, "/") }

// serveSQLiteFloor is serveFloor on a file, with statements that are prepared once.
func serveSQLiteFloor(ctx context.Context, c config) error {
	writer, err := openSQLite(c.database, 1)
	if err != nil {
		return err
	}
	reader, err := openSQLite(c.database, 4)
	if err != nil {
		return err
	}
	selects, err := reader.PrepareContext(ctx, "select body from documents where id = ?") //nolint:sqlclosecheck // ends with the process
	if err != nil {
		return err
	}
	updates, err := writer.PrepareContext(ctx, "update auth_sessions set counter = counter + 1, rotated_at = ?, last_active_at = ?, idle_until = ? where id = ?") //nolint:sqlclosecheck // ends with the process
	if err != nil {
		return err
	}
	answer := bytes.Repeat([]byte("x"), c.size)
	http.HandleFunc("GET /rows/{id}", func(w http.ResponseWriter, r *http.Request) {
		var body []byte
		if err := selects.QueryRowContext(r.Context(), r.PathValue("id")).Scan(&body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w, body)
	})
	http.HandleFunc("POST /rows/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := time.Now()
		result, err := updates.ExecContext(r.Context(), now.UnixMicro(), now.UnixMicro(), now.Add(720*time.Hour).UnixMicro(), r.PathValue("id"))
		if err == nil {
			var n int64
			if n, err = result.RowsAffected(); n != 1 && err == nil {
				err = fmt.Errorf("%d rows", n)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w, answer)
	})
	return nil
}
