package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// demoOwner has all permissions in the dashboard of -demo.
const demoOwner = "owner@example.com"

// makeUp fills a store with users and a month of events, and returns the owner's
// password.
func makeUp(ctx context.Context, a *auth.Auth, st *memstore.Store, adm *admin.Admin) (string, error) {
	who, password := admin.System("demo").Accepting(), rand.Text()
	if _, err := adm.CreateRole(ctx, who, admin.CreateRoleParams{Name: "editor", Description: "May change others' texts", Permissions: []string{admin.PermUsersRead}}); err != nil {
		return "", err
	}
	if _, err := adm.CreateUser(ctx, who, admin.CreateUserParams{Email: demoOwner, EmailVerified: true, FullName: "Olga Owner", Password: password, Roles: []string{auth.RoleOwner}}); err != nil {
		return "", err
	}
	names := strings.Fields("Ada Alan Barbara Bob Carol Dennis Donald Edsger Eve Frances Grace Hedy Ivan Jean Joan John Katherine Ken Leslie Linus Lynn Margaret Marvin Niklaus Peggy Radia Rob Sophie Tim Trent Victor Walter")
	now := time.Now().UTC()
	var events []auth.Event
	counts := map[store.Count]int64{}
	count := func(m store.Metric, label string, at time.Time) {
		counts[store.Count{Metric: m, Label: label, At: at.Truncate(time.Hour)}]++
	}
	for i, name := range names {
		made := now.Add(-time.Duration(i*22+3) * time.Hour)
		p := auth.ImportUserParams{Email: strings.ToLower(name) + "@example.com", EmailVerified: i%7 != 3, FullName: name + " Example", CreatedAt: made, LastSignInAt: made.Add(now.Sub(made) * 2 / 3), UserMetadata: map[string]any{"city": []string{"Berlin", "Paris", "Oslo"}[i%3]}, AppMetadata: map[string]any{"plan": []string{"free", "pro"}[i%2]}}
		if i%9 == 1 {
			p.Roles = []string{"editor"}
		}
		u, err := a.ImportUser(ctx, p)
		if err != nil {
			return "", err
		}
		if name == "Eve" {
			if _, err := adm.BanUser(ctx, who, admin.BanUserParams{UserID: u.ID, Reason: "spam"}); err != nil {
				return "", err
			}
		}
		from := auth.Client{IP: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}), UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
		happens := func(kind auth.EventType, at time.Time, method, reason string) {
			events = append(events, auth.Event{ID: uuid.Must(uuid.NewV7()).String(), Type: kind, At: at, Actor: auth.Actor{Kind: store.ActorUser, ID: u.ID}, UserID: u.ID, Method: method, Reason: reason, Client: from})
		}
		method := []string{"password", "magic_link", "oauth"}[i%3]
		happens(auth.EventSignedUp, made, method, "")
		count(store.MetricSignUps, method, made)
		for at, n := made, 0; at.Before(now); at, n = at.Add(time.Duration(9+i%5*11)*time.Hour), n+1 {
			if n%6 == 4 {
				happens(auth.EventSignInFailed, at, "password", "invalid_credentials")
				count(store.MetricSignInFailures, "invalid_credentials", at)
			}
			happens(auth.EventSignedIn, at.Add(time.Minute), method, "")
			count(store.MetricSignIns, method, at)
		}
	}
	if err := st.AddEvents(ctx, events); err != nil {
		return "", err
	}
	var add store.AddCounts
	for c, n := range counts {
		c.N = n
		add.Counts = append(add.Counts, c)
	}
	if err := st.AddCounts(ctx, add); err != nil {
		return "", fmt.Errorf("figures: %w", err)
	}
	return password, nil
}
