package pgstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// A sign-in counts sessions only where there may be too many, and devices only where one
// is new: all other sign-ins would pay for a rare need.
func TestSignInCountsOnlyWhereNeeded(t *testing.T) {
	s, schema := openSchema(t)
	userID := signUp(t, s).UserID
	sessions, devices := schema+".end_least_active_sessions", schema+".forget_least_seen_devices"
	inTx(t, s, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local track_functions = 'pl'"); err != nil {
			return err
		}
		calls := func(name string) int {
			t.Helper()
			return count(t, tx, "select coalesce(pg_stat_get_xact_function_calls($1::regproc), 0)", name)
		}
		for i, step := range []struct {
			device            string
			keep              int
			revoke            bool // first
			sessions, devices int  // how often each was counted up to now
		}{
			{device: "one", keep: 3, devices: 1},
			{device: "one", keep: 3, devices: 1}, // three sessions do not exceed three
			{keep: 0, devices: 1},
			{keep: 4, sessions: 1, devices: 1},
			{keep: 5, sessions: 1, devices: 1}, // four are known to be left
			{keep: 5, sessions: 2, devices: 1},
			{keep: 5, revoke: true, sessions: 3, devices: 1}, // the count does not include the revocation
			{keep: 5, sessions: 3, devices: 1},
			{device: "two", keep: 5, sessions: 3, devices: 2},
		} {
			if step.revoke {
				if _, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: byTest(), UserID: userID}); err != nil {
					return err
				}
			}
			sess := newSession(userID)
			sess.Device = step.device
			if _, err := s.CreateSession(ctx, store.CreateSession{Change: byTest(), NewSession: store.NewSession{Session: sess, KeepSessions: step.keep}}); err != nil {
				return err
			}
			if n, m := calls(sessions), calls(devices); n != step.sessions || m != step.devices {
				t.Errorf("step %d: sessions counted %d times, want %d; devices %d, want %d", i, n, step.sessions, m, step.devices)
			}
		}
		return errRollback
	})
}
