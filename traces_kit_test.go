package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// What comes of what rooms ask of the kit is written down as that of requests is.

// asking is something that a room asks of the kit, once it is prepared.
type asking func(ctx context.Context) (any, error)

// kitRow makes a row of it, whose answer has what was returned for its body.
func kitRow(name string, k kind, prepare func(s *scene, kit host.Kit) asking) row {
	return row{name: name, kind: k, prepare: func(s *scene) func() *answer {
		do := prepare(s, host.Of(s))
		return func() *answer {
			v, err := do(s.t.Context())
			return returned(s.t, v, err)
		}
	}}
}

// returned is an answer with what a call returned.
func returned(t *testing.T, v any, err error) *answer {
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
	return &answer{t: t, header: http.Header{}, body: raw}
}

// byOperator is in whose name rooms do what they do here.
func byOperator() auth.Authority { return auth.Authority{System: "operator"} }

// user is the scene's account as it is now.
func (s *scene) user() auth.User {
	s.t.Helper()
	u, err := s.tap.Inner().User(s.t.Context(), store.ByID(s.id))
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// plainly is kitRow with nothing to prepare.
func plainly(name string, k kind, do func(ctx context.Context, s *scene, kit host.Kit) (any, error)) row {
	return kitRow(name, k, func(s *scene, kit host.Kit) asking {
		return func(ctx context.Context) (any, error) { return do(ctx, s, kit) }
	})
}

// kitRows are the calls of the kit, by what they are about.
func kitRows() map[string][]row {
	all := map[string][]row{}
	for _, rows := range []map[string][]row{kitUserRows(), kitLinkRows(), kitRestRows()} {
		maps.Copy(all, rows)
	}
	return all
}

// Whatever rooms have the kit do is as it is written down, also where a call of the
// store fails.
func TestTracesOfTheKit(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return
	}
	traceTable(t, "", kitRows(), func(t *testing.T, r row) []string {
		t.Helper()
		w := newTraceWorld(t, r)
		ref := w.trace(trial{row: r}, 7*time.Second)
		lines := append([]string{title(r, "")}, ref.lines...)
		if r.kind != onStolen { // what a failure means does not depend on whose the account is
			ref.n = 0
		}
		for k := 1; k <= ref.n; k++ {
			tr := w.trace(trial{row: r, fault: storetap.FailsBefore, k: k}, time.Second)
			lines = append(lines, tr.afterFault()...)
		}
		return append(lines, "")
	})
}
