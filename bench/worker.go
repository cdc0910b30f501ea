package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const userAgent = "authmount-bench/1 (a client of ordinary length, such as a browser's)"

// request writes a request; an empty body is none.
func request(to []byte, method, path, token, body string) []byte {
	to = fmt.Appendf(to, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: %s\r\n", method, path, userAgent)
	if token != "" {
		to = fmt.Appendf(to, "Authorization: Bearer %s\r\n", token)
	}
	if body != "" {
		to = fmt.Appendf(to, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(to, "\r\n"...), body...)
}

// repeat makes the same requests repeatedly.
type repeat struct {
	requests [][]byte
	i        int
}

func (r *repeat) next(to []byte) []byte {
	r.i = (r.i + 1) % len(r.requests)
	return append(to, r.requests[r.i]...)
}

func (r *repeat) got([]byte) error { return nil }

// refresher refreshes its sessions in turn.
type refresher struct {
	tokens []string
	access []string // the newest access tokens, if stored
	keep   bool
	i      int
}

func refreshBody(token string) string { return `{"refresh_token":"` + token + `"}` }

func (r *refresher) next(to []byte) []byte {
	r.i = (r.i + 1) % len(r.tokens)
	return request(to, "POST", prefix+"/refresh", "", refreshBody(r.tokens[r.i]))
}

func (r *refresher) got(body []byte) error {
	r.tokens[r.i] = member(body, "refresh_token")
	if r.keep {
		r.access[r.i] = member(body, "access_token")
	}
	if r.tokens[r.i] == "" {
		return fmt.Errorf("no refresh token in %s", body)
	}
	return nil
}

// member returns a string without escapes from an object.
func member(object []byte, name string) string {
	_, rest, _ := bytes.Cut(object, []byte(`"`+name+`":"`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// newcomer signs up repeatedly.
type newcomer struct{}

var newcomers atomic.Int64

func (newcomer) next(to []byte) []byte {
	body := fmt.Sprintf(`{"email":"new%d@example.org","password":"%s","full_name":"New User"}`, newcomers.Add(1), password)
	return request(to, "POST", prefix+"/signup", "", body)
}

func (newcomer) got([]byte) error { return nil }

// used returns one session each of the measured users, starting with first.
func used(first, session int) []uuid.UUID {
	return all(usedUsers, func(i int) uuid.UUID { return sessionID(first+i, session) })
}

// refreshers divides sessions among n workers.
func refreshers(n int, sessions []uuid.UUID) []*refresher {
	list := make([]*refresher, n)
	for i := range list {
		list[i] = &refresher{}
	}
	for i, id := range sessions {
		r := list[i%n]
		r.tokens = append(r.tokens, refreshToken(id))
	}
	return list
}

// repeaters divides requests among n workers.
func repeaters(n int, requests [][]byte) []*repeat {
	list := make([]*repeat, n)
	for i := range list {
		list[i] = &repeat{}
	}
	for i, r := range requests {
		list[i%n].requests = append(list[i%n].requests, r)
	}
	return list
}

// signIn refreshes each session once and returns the access tokens and the lengths of the
// responses to a refresh and to GET /me.
func signIn(ctx context.Context, addr string, sessions []uuid.UUID) (tokens []string, refresh, me int, err error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { _ = c.conn.Close() }()
	for _, id := range sessions {
		r := &refresher{tokens: []string{refreshToken(id)}, access: []string{""}, keep: true}
		body, err := c.ask(r)
		if err != nil {
			return nil, 0, 0, err
		}
		refresh = len(body)
		tokens = append(tokens, r.access[0])
	}
	if len(tokens) == 0 {
		return nil, 0, 0, errors.New("no sessions")
	}
	body, err := c.ask(&repeat{requests: [][]byte{meRequest(tokens[0])}})
	return tokens, refresh, len(body), err
}

func meRequest(token string) []byte { return request(nil, "GET", prefix+"/me", token, "") }

func loginRequest(user int) []byte {
	return request(nil, "POST", prefix+"/login", "", fmt.Sprintf(`{"email":"%s","password":"%s"}`, email(user), password))
}

// all returns a list of n.
func all[T any](n int, f func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

// asLoad returns a contender's turn: workers at an address.
func asLoad[W worker](addr string, workers []W) func(context.Context, time.Duration) (int, error) {
	return func(ctx context.Context, d time.Duration) (int, error) { return drive(ctx, addr, workers, d) }
}
