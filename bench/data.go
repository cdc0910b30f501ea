package main

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

// sessionsEach is the number of sessions per user.
const sessionsEach = 3

// Ids of loaded records are derived from their number and, as in version 7, increase with
// time.
func userID(user int) uuid.UUID { return idOf(1, user, 0) }

func sessionID(user, session int) uuid.UUID { return idOf(2, user, session) }

func idOf(kind byte, user, session int) uuid.UUID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d", kind, user, session))
	id := uuid.UUID(sum[:16])
	at := uint64(1_700_000_000_000 + int64(1000*user+100*session)) //nolint:gosec // milliseconds since 1970
	binary.BigEndian.PutUint32(id[:], uint32(at>>16))              //nolint:gosec // 48 bits in all
	binary.BigEndian.PutUint16(id[4:], uint16(at))                 //nolint:gosec // see above
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func email(user int) string { return fmt.Sprintf("user%07d@example.com", user) }

// load creates a database with the schema and users that can sign in.
func load(ctx context.Context, cluster *pgtest.Server, name, hash string, users int) (url string, err error) {
	admin, err := pgx.Connect(ctx, cluster.URL)
	if err != nil {
		return "", err
	}
	defer func() { _ = admin.Close(ctx) }()
	if _, err := admin.Exec(ctx, "create database "+name); err != nil {
		return "", err
	}
	url = pgtest.InDatabase(admin.Config(), name)
	store, err := pgstore.Open(ctx, url)
	if err != nil {
		return "", err
	}
	defer store.Close()
	if err := store.Migrate(ctx); err != nil {
		return "", err
	}
	conn, err := store.Pool().Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	// The loaded data is consistent, and checking every reference would take longer than
	// all the rest.
	if _, err := conn.Exec(ctx, "set session_replication_role = replica"); err != nil {
		return "", err
	}
	encoded, err := makeHash(hash)
	if err != nil {
		return "", err
	}
	now := time.Now().Add(-time.Hour)
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"auth", "users"},
		[]string{"id", "email", "email_key", "email_verified_at", "full_name", "roles", "password_hash", "created_at", "updated_at", "last_sign_in_at", "sessions_at_most"},
		pgx.CopyFromSlice(users, func(i int) ([]any, error) {
			return []any{userID(i), email(i), email(i), now, fmt.Sprintf("User %d", i), []string{}, encoded, now, now, now, sessionsEach}, nil
		}))
	if err != nil {
		return "", err
	}
	amr := fmt.Sprintf(`[{"method":"password","timestamp":%d}]`, now.Unix())
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"auth", "sessions"},
		[]string{"id", "user_id", "counter", "rotated_at", "aal", "amr", "created_at", "last_active_at", "idle_until", "ip", "user_agent"},
		pgx.CopyFromSlice(users*sessionsEach, func(i int) ([]any, error) {
			return []any{sessionID(i/sessionsEach, i%sessionsEach), userID(i / sessionsEach), 0, now, "aal1", amr, now, now, now.Add(720 * time.Hour), "127.0.0.1", userAgent}, nil
		}))
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "vacuum analyze")
	return url, err
}

// loadFloor adds the data of the baseline measurements: documents of a certain length, and sessions like
// the library's.
func loadFloor(ctx context.Context, url string, users, size int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `create schema floor;
		create table floor.documents (id uuid primary key, body text not null);
		create table floor.sessions (like auth.sessions including all);
		do $$ begin -- like does not copy the fillfactor
			execute (select format('alter table floor.sessions set (%s)', array_to_string(reloptions, ', ')) from pg_class where oid = 'auth.sessions'::regclass);
		end $$;
		insert into floor.sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent)
			select id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent from auth.sessions`); err != nil {
		return err
	}
	body := string(bytes.Repeat([]byte("x"), size))
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"floor", "documents"}, []string{"id", "body"},
		pgx.CopyFromSlice(users, func(i int) ([]any, error) { return []any{sessionID(i, 0), body}, nil }))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "vacuum analyze")
	return err
}

// Keys are derived from the secret as in the library, so that loaded sessions can be used
// without a login.
var (
	refreshKey = derive("refresh token", 32)
	accessKey  = derive("signing HS256", 32)
	accessID   = base64.RawURLEncoding.EncodeToString(derive("signing HS256 key id", 16))
)

func derive(purpose string, n int) []byte {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "authmount v1 "+purpose, n)
	if err != nil {
		panic(err) // only for lengths that are not used
	}
	return key
}

// refreshToken returns the first refresh token of a session.
func refreshToken(session uuid.UUID) string {
	const version = "v1."
	body := append(session[:], 0, 0, 0, 0)
	h := hmac.New(sha256.New, refreshKey)
	h.Write([]byte(version))
	h.Write(body)
	return version + base64.RawURLEncoding.EncodeToString(h.Sum(body))
}

// accessToken returns an access token of a session, for servers with -hs256.
func accessToken(user, session uuid.UUID) string {
	now := time.Now()
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": baseURL, "aud": "authenticated", "sub": user.String(), "session_id": session.String(), "role": "authenticated",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "aal": "aal1",
	})
	t.Header["typ"], t.Header["kid"] = "at+jwt", accessID
	signed, err := t.SignedString(accessKey)
	if err != nil {
		panic(err) // strings and numbers can be encoded
	}
	return signed
}
