package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof" //nolint:gosec // these servers listen on loopback, for as long as a measurement
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/passhash"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

const (
	prefix   = "/auth/v1"
	baseURL  = "http://127.0.0.1" + prefix
	secret   = "the secret of every server that is measured"
	password = "correct horse battery staple"
)

// serve runs the server process: it prints its address and stops with the process that
// started it.
func serve(c config) error {
	ctx := context.Background()
	var err error
	switch c.serve {
	case "auth":
		err = serveAuth(ctx, c)
	case "select", "update":
		floor := serveFloor
		if isSQLite(c.database) {
			floor = serveSQLiteFloor
		}
		err = floor(ctx, c)
	case "empty":
		answer := bytes.Repeat([]byte("x"), c.size)
		http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { respond(w, answer) })
	default:
		err = fmt.Errorf("unknown server %q", c.serve)
	}
	if err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, ln.Addr())
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = srv.Close()
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// respond writes responses as the library's handlers do.
func respond(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(body)
}

type nowhere struct{}

func (nowhere) Send(context.Context, auth.Message) error { return nil }

// serveAuth serves Authmount as an application mounts it.
func serveAuth(ctx context.Context, c config) error {
	var st auth.Store
	var err error
	if isSQLite(c.database) {
		st, err = sqlitestore.Open(c.database)
	} else {
		st, err = pgstore.Open(ctx, c.database)
	}
	if err != nil {
		return err
	}
	a, err := newAuth(ctx, st, c)
	if err != nil {
		return err
	}
	encoded, err := makeHash(c.hash)
	if err != nil {
		return err
	}
	h, err := passhash.Parse(encoded)
	if err != nil {
		return err
	}
	http.Handle(prefix+"/", a.Handler())
	http.HandleFunc("GET /hashes", runHashes(h))
	// The store calls of a login, without the hash that hides their cost.
	http.HandleFunc("GET /credentials/{email}", func(w http.ResponseWriter, r *http.Request) {
		found, err := st.Credentials(r.Context(), store.ByEmail(r.PathValue("email")))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w, []byte(found.PasswordHash))
	})
	http.HandleFunc("POST /sessions/{email}", func(w http.ResponseWriter, r *http.Request) {
		found, err := st.Credentials(r.Context(), store.ByEmail(r.PathValue("email")))
		if err == nil {
			err = startSession(r.Context(), st, found)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w, []byte(found.PasswordHash))
	})
	return nil
}

// startSession stores a session as a login does.
func startSession(ctx context.Context, st auth.Store, c store.Credentials) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	now := time.Now()
	change := store.Change{Now: now, By: auth.Authority{Proof: true}, IfUsers: []auth.UserAt{{ID: c.User.ID, CredentialRevision: &c.User.CredentialRevision}}}
	_, err = st.CreateSession(ctx, store.CreateSession{Change: change, NewSession: store.NewSession{Session: auth.Session{
		ID: id.String(), UserID: c.User.ID, AAL: store.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: now.Unix()}},
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(720 * time.Hour), IP: "127.0.0.1", UserAgent: userAgent,
	}}})
	return err
}

// newAuth returns Authmount with the tool's configuration.
func newAuth(ctx context.Context, store auth.Store, c config) (*auth.Auth, error) {
	tokens := auth.TokenOptions{Life: 24 * time.Hour} // longer than the measurement
	if c.hs256 {
		tokens.Algorithm = "HS256"
	}
	opts := []auth.Option{
		auth.WithDevMode(), auth.WithLogger(slog.New(slog.DiscardHandler)), auth.WithSecret([]byte(secret)),
		auth.WithBaseURL(baseURL), auth.WithMailer(nowhere{}),
		auth.WithTokens(tokens),
		auth.WithRateLimits(auth.RateLimits{Off: !c.limits}),
	}
	if c.hash == "bcrypt" {
		opts = append(opts, auth.WithPasswords(auth.PasswordOptions{BcryptCost: 10}))
	}
	return auth.New(ctx, store, opts...)
}

// serveFloor is net/http and one statement that finds its row by the primary key. pgx
// prepares it once per connection.
func serveFloor(ctx context.Context, c config) error {
	pool, err := pgxpool.New(ctx, c.database)
	if err != nil {
		return err
	}
	answer := bytes.Repeat([]byte("x"), c.size)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	http.HandleFunc("GET /rows/{id}", func(w http.ResponseWriter, r *http.Request) {
		var body []byte
		if err := pool.QueryRow(r.Context(), "select body from floor.documents where id = $1::uuid", r.PathValue("id")).Scan(&body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w, body)
	})
	http.HandleFunc("POST /rows/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := time.Now()
		tag, err := pool.Exec(r.Context(), "update floor.sessions set counter = counter + 1, rotated_at = $2, last_active_at = $2, idle_until = $3 where id = $1::uuid",
			r.PathValue("id"), now, now.Add(720*time.Hour))
		if err != nil || tag.RowsAffected() != 1 {
			http.Error(w, fmt.Sprint(tag, err), http.StatusInternalServerError)
			return
		}
		if c.sign {
			sum := sha256.Sum256(answer)
			if _, err := ecdsa.SignASN1(rand.Reader, key, sum[:]); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		respond(w, answer)
	})
	return nil
}

// runHashes verifies a password repeatedly, with as many callers as workers and as many
// concurrent hashes as processors, and returns the number of verifications in the given
// time.
func runHashes(h *passhash.Hash) http.HandlerFunc {
	cpu := make(chan struct{}, runtime.GOMAXPROCS(0))
	return func(w http.ResponseWriter, r *http.Request) {
		d, err1 := time.ParseDuration(r.FormValue("for"))
		workers, err2 := strconv.Atoi(r.FormValue("workers"))
		if err := errors.Join(err1, err2); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		end := time.Now().Add(d)
		var n atomic.Int64
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for time.Now().Before(end) {
					cpu <- struct{}{}
					if h.Verify(password) {
						n.Add(1)
					}
					<-cpu
				}
			})
		}
		wg.Wait()
		respond(w, strconv.AppendInt(nil, n.Load(), 10))
	}
}

func makeHash(kind string) (string, error) {
	if kind == "bcrypt" {
		return passhash.MakeBcrypt(password, 10)
	}
	return passhash.Argon2id{Memory: 19456, Time: 2, Threads: 1}.Make(password), nil
}
