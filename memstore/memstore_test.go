package memstore_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) auth.Store { return memstore.New() })
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

const (
	userID    = "01a1fb4c-2b13-7a71-806e-d67843451400"
	sessionID = "01a1fb4c-2b13-7a71-806e-d67843451401"
	endedID   = "01a1fb4c-2b13-7a71-806e-d67843451402"
)

func TestSnapshot(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "auth.json")
	s, err := memstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	session := func(id string) auth.Session {
		return auth.Session{ID: id, UserID: userID, AAL: auth.LevelAAL1, CreatedAt: now, IdleUntil: now.Add(time.Hour), Counter: 7}
	}
	u := auth.User{
		ID: userID, Email: "Ada@example.com", CreatedAt: now, UserMetadata: map[string]any{"a": "b"},
		Identities: []auth.Identity{{ID: endedID, Provider: "p", Subject: "s", Email: "x@example.com", CreatedAt: now}},
	}
	if _, err := s.CreateUser(ctx, auth.NewUser{User: u, PasswordHash: "hash"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{sessionID, endedID} {
		if _, err := s.CreateSession(ctx, auth.NewSession{Session: session(id)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.RevokeSessions(ctx, userID, auth.SessionFilter{ID: endedID}, now); err != nil {
		t.Fatal(err)
	}
	token := auth.Token{Purpose: auth.PurposeReset, Hash: []byte(strings.Repeat("h", 32)), UserID: userID, Subject: "s", ExpiresAt: now.Add(time.Hour), Data: []byte("{}")}
	if err := s.PutToken(ctx, token); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(ctx); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	again, err := memstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := again.Credentials(ctx, auth.ByEmail("ada@example.com"))
	if err != nil || c.PasswordHash != "hash" || c.User.Email != "Ada@example.com" || !c.User.CreatedAt.Equal(now) || c.User.UserMetadata["a"] != "b" {
		t.Errorf("credentials %+v, %v", c, err)
	}
	if _, err := again.User(ctx, auth.ByIdentity("p", "s")); err != nil {
		t.Error(err)
	}
	if got, _, err := again.Session(ctx, sessionID, now); err != nil || got.Counter != 7 {
		t.Errorf("session %+v, %v", got, err)
	}
	if _, _, err := again.Session(ctx, endedID, now); err == nil {
		t.Error("a revoked session came back to life")
	}
	if _, err := again.PeekToken(ctx, auth.PurposeReset, token.Hash, now); err != nil {
		t.Error(err)
	}
}

func TestDamagedSnapshot(t *testing.T) {
	for name, content := range map[string]string{
		"cut": `{"version":1,"users":[`, "other version": `{"version":2}`, "empty": "", "orphan": `{"version":1,"sessions":[{"ID":"x","UserID":"y"}]}`,
	} {
		path := filepath.Join(t.TempDir(), "auth.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := memstore.Open(path); err == nil {
			t.Errorf("%s: opened all the same", name)
		}
	}
	if err := memstore.New().Save(t.Context()); err == nil {
		t.Error("saved to nowhere")
	}
}

func BenchmarkAdvanceSession(b *testing.B) {
	ctx, s := context.Background(), memstore.New()
	if _, err := s.CreateUser(ctx, auth.NewUser{User: auth.User{ID: userID}}); err != nil {
		b.Fatal(err)
	}
	if _, err := s.CreateSession(ctx, auth.NewSession{Session: auth.Session{ID: sessionID, UserID: userID, IdleUntil: now.Add(time.Hour)}}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	counter := uint32(0)
	for b.Loop() {
		if _, _, err := s.AdvanceSession(ctx, auth.Advance{SessionID: sessionID, Counter: counter, Now: now, IdleUntil: now.Add(time.Hour)}); err != nil {
			b.Fatal(err)
		}
		counter++
	}
}
