package traces_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Calls of the kit, by packages built on Auth, are recorded as requests are.

// asking is a prepared call of the kit by a package built on Auth.
type asking func(ctx context.Context) (any, error)

// kitRow is a row that calls the kit. The body of its answer has the returned value.
func kitRow(name string, k harness.Kind, prepare func(s *harness.Scene, kit host.Kit) asking) harness.Row {
	return harness.Row{Name: name, Kind: k, Prepare: func(s *harness.Scene) func() *harness.Answer {
		do := prepare(s, host.Of(s))
		return func() *harness.Answer {
			v, err := do(s.T.Context())
			return returned(s.T, v, err)
		}
	}}
}

// returned is an answer with the result of a call.
func returned(t *testing.T, v any, err error) *harness.Answer {
	t.Helper()
	body := map[string]any{"returned": v}
	if err != nil {
		body["error"] = err.Error()
	}
	var e *auth.Error
	if errors.As(err, &e) {
		body["fields"], body["reasons"], body["again"] = e.Fields, e.Reasons, e.RetryAfter
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return &harness.Answer{T: t, Header: http.Header{}, Body: raw}
}

// user is the scene's account as it is now.
func user(s *harness.Scene) auth.User {
	s.T.Helper()
	u, err := s.Tap.Inner().User(s.T.Context(), store.ByID(s.Id))
	if err != nil {
		s.T.Fatal(err)
	}
	return u
}

// plainly is kitRow with nothing to prepare.
func plainly(name string, k harness.Kind, do func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error)) harness.Row {
	return kitRow(name, k, func(s *harness.Scene, kit host.Kit) asking {
		return func(ctx context.Context) (any, error) { return do(ctx, s, kit) }
	})
}

// kitRows are the calls of the kit, by subject.
func kitRows() map[string][]harness.Row {
	all := map[string][]harness.Row{}
	for _, rows := range []map[string][]harness.Row{kitUserRows(), kitLinkRows(), kitRestRows()} {
		maps.Copy(all, rows)
	}
	return all
}

// The effects of calls of the internal API are as they are written down.
func TestTracesOfTheKit(t *testing.T) {
	t.Parallel()
	traceTable(t, "", kitRows(), func(t *testing.T, r harness.Row) []string {
		t.Helper()
		return append(append([]string{title(r, "")}, newTraceWorld(t, r).trace(harness.Trial{Row: r}, 7*time.Second).lines...), "")
	})
}
