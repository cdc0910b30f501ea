package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/store"
)

// screen is a page of the dashboard, and the operations that it calls, in Go.
type screen struct {
	name, at string
	asks     func(ctx context.Context, who admin.Actor) error

	took [2][]float64 // median of each round in µs, for the page and for its operations
}

// measureDashboard compares screens, from the request to the last byte of the page, with
// their operations alone.
func (b *bench) measureDashboard(ctx context.Context, a *auth.Auth, adm *admin.Admin) error {
	const email, password = "operator@example.com", "a password of an operator"
	u, err := adm.CreateUser(ctx, admin.System("bench").Accepting(), admin.CreateUserParams{Email: email, EmailVerified: true, Password: password, Roles: []string{auth.RoleOwner}})
	if err != nil {
		return err
	}
	dash, err := dashboard.New(adm, dashboard.Options{})
	if err != nil {
		return err
	}
	send := func(method, target, form string, cookies []*http.Cookie) *http.Response {
		r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		dash.ServeHTTP(w, r)
		return w.Result()
	}
	in := send(http.MethodPost, "/dashboard/sign-in", url.Values{"login": {email}, "password": {password}}.Encode(), nil) //nolint:bodyclose // a recorder's
	login, err := a.Login(ctx, auth.LoginParams{Email: email, Password: password})
	if err != nil {
		return err
	}
	who := admin.User(auth.Caller{UserID: u.ID, SessionID: login.SessionID})
	list := screens(adm)
	for _, s := range list {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/dashboard"+s.at, http.NoBody)
		for _, c := range in.Cookies() {
			r.AddCookie(c)
		}
		both := [2]func() error{
			func() error {
				w := &sink{header: http.Header{}}
				if dash.ServeHTTP(w, r.Clone(ctx)); w.status != http.StatusOK || w.size == 0 {
					return fmt.Errorf("%d to %s", w.status, w.header.Get("Location"))
				}
				return nil
			},
			func() error { return s.asks(ctx, who) },
		}
		for round := -1; round < b.rounds; round++ { // the first round is a warm-up
			for i, turn := range both {
				var took []float64
				for end := time.Now().Add(b.round); len(took) == 0 || time.Now().Before(end); {
					began := time.Now()
					err := turn()
					took = append(took, float64(time.Since(began).Nanoseconds())/1000)
					if err != nil {
						return fmt.Errorf("%s, %d: %w", s.name, i, err)
					}
				}
				if round >= 0 {
					s.took[i] = append(s.took[i], median(took))
				}
			}
		}
	}
	b.printf("\nscreens of the dashboard, and their operations in Go\n\n| screen | µs | operations, µs | ratio | goal |\n|---|---|---|---|---|\n")
	for _, s := range list {
		ratios := all(b.rounds, func(i int) float64 { return s.took[0][i] / s.took[1][i] })
		b.printf("| %s | %.0f | %.0f | %.2f (%.2f–%.2f) | ≤ %.1f |\n", s.name, median(s.took[0]), median(s.took[1]), median(ratios), slices.Min(ratios), slices.Max(ratios), adminGoal)
	}
	return nil
}

// sink discards a page. A recorder would copy it, which costs as much as the page.
type sink struct {
	header       http.Header
	status, size int
}

func (s *sink) Header() http.Header    { return s.header }
func (s *sink) WriteHeader(status int) { s.status = status }
func (s *sink) Write(b []byte) (int, error) {
	s.size += len(b)
	return len(b), nil
}

// screens are the pages in the dashboard's navigation, and an account's page.
func screens(adm *admin.Admin) []*screen {
	ada := userID(4711).String()
	names := func(ctx context.Context, who admin.Actor, ids []string) error {
		slices.Sort(ids)
		ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
		_, err := adm.ListUsers(ctx, who, admin.ListUsersParams{UserFilter: admin.UserFilter{IDs: ids}, Limit: store.MaxQueryIDs})
		return err
	}
	users := func(f admin.UserFilter) func(context.Context, admin.Actor) error {
		return func(ctx context.Context, who admin.Actor) error {
			_, err := adm.ListUsers(ctx, who, admin.ListUsersParams{UserFilter: f, Count: "estimate"})
			return err
		}
	}
	log := func(f admin.EventFilter) func(context.Context, admin.Actor) error {
		return func(ctx context.Context, who admin.Actor) error {
			p, err := adm.AuditLog(ctx, who, admin.AuditLogParams{EventFilter: f})
			if err != nil {
				return err
			}
			var ids []string
			for _, e := range p.Events {
				if e.Record == nil {
					ids = append(ids, e.UserID)
				}
			}
			return names(ctx, who, ids)
		}
	}
	account := func(then func(context.Context, admin.Actor) error) func(context.Context, admin.Actor) error {
		return func(ctx context.Context, who admin.Actor) error {
			if _, err := adm.User(ctx, who, ada); err != nil {
				return err
			}
			return then(ctx, who)
		}
	}
	return []*screen{
		{name: "overview", at: "/", asks: func(ctx context.Context, who admin.Actor) error {
			o, err := adm.Overview(ctx, who, admin.OverviewParams{Period: "24h"})
			if err == nil {
				_, err = adm.Stats(ctx, who, admin.StatsParams{Metrics: []store.Metric{"sign_ups", "sign_ins", "sign_in_failures"}, From: o.From, To: o.To, Interval: store.Hourly})
			}
			return err
		}},
		{name: "users", at: "/users", asks: users(admin.UserFilter{})},
		{name: "users, by the begin of an address", at: "/users?q=user00471", asks: users(admin.UserFilter{Search: "user00471"})},
		{name: "a user", at: "/users/" + ada, asks: account(func(context.Context, admin.Actor) error { return nil })},
		{name: "a user's timeline", at: "/users/" + ada + "?tab=timeline", asks: account(func(ctx context.Context, who admin.Actor) error {
			_, err := adm.Timeline(ctx, who, admin.TimelineParams{UserID: ada})
			return err
		})},
		{name: "a user's sessions", at: "/users/" + ada + "?tab=sessions", asks: account(func(ctx context.Context, who admin.Actor) error {
			_, err := adm.UserSessions(ctx, who, ada)
			return err
		})},
		{name: "sessions", at: "/sessions", asks: func(ctx context.Context, who admin.Actor) error {
			p, err := adm.ListSessions(ctx, who, admin.ListSessionsParams{})
			if err != nil {
				return err
			}
			var ids []string
			for _, s := range p.Sessions {
				ids = append(ids, s.UserID)
			}
			return names(ctx, who, ids)
		}},
		{name: "audit log", at: "/audit", asks: log(admin.EventFilter{})},
		{name: "audit log, of one type", at: "/audit?action=user.banned", asks: log(admin.EventFilter{Action: "user.banned"})},
		{name: "roles", at: "/roles", asks: func(ctx context.Context, who admin.Actor) error {
			_, err := adm.RoleMatrix(ctx, who)
			return err
		}},
		{name: "invitations", at: "/invitations", asks: func(ctx context.Context, who admin.Actor) error {
			_, err := adm.Invitations(ctx, who, admin.InvitationsParams{})
			return err
		}},
		{name: "messages", at: "/messages", asks: func(ctx context.Context, who admin.Actor) error {
			_, err := adm.Messages(ctx, who, admin.MessagesParams{})
			return err
		}},
		{name: "keys", at: "/keys", asks: func(ctx context.Context, who admin.Actor) error {
			_, err := adm.ListKeys(ctx, who, admin.ListKeysParams{})
			return err
		}},
		{name: "settings", at: "/settings", asks: func(ctx context.Context, who admin.Actor) error {
			_, err := adm.Settings(ctx, who)
			return err
		}},
	}
}
