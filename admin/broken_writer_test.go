package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// full accepts some bytes, and no more.
type full struct{ room int }

var errFull = errors.New("no room")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return 0, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

// An export reports an error if its writer is full or the store fails midway: half an
// export is never taken for a whole one.
func TestHalfOfAnExportIsNotTakenForAll(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap)
	var rows strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&rows, "{\"email\":\"p%d@example.com\",\"user_metadata\":{\"x\":%q}}\n", i, strings.Repeat("x", 100))
	}
	system := admin.System("test").Accepting()
	id, err := o.adm.ImportUsers(t.Context(), system, admin.ImportUsersParams{}, strings.NewReader(rows.String()))
	if err != nil {
		t.Fatal(err)
	}
	o.workedOff(id)
	for name, write := range map[string]func(ctx context.Context, w io.Writer) error{
		"accounts": func(ctx context.Context, w io.Writer) error {
			return o.adm.ExportUsers(ctx, system, admin.ExportUsersParams{}, w)
		},
		"accounts as a table": func(ctx context.Context, w io.Writer) error {
			return o.adm.ExportUsers(ctx, system, admin.ExportUsersParams{Format: admin.FormatCSV}, w)
		},
		"events": func(ctx context.Context, w io.Writer) error {
			return o.adm.ExportAuditLog(ctx, system, admin.ExportAuditLogParams{}, w)
		},
		"events as a table": func(ctx context.Context, w io.Writer) error {
			return o.adm.ExportAuditLog(ctx, system, admin.ExportAuditLogParams{Format: admin.FormatCSV}, w)
		},
		"few events as a table": func(ctx context.Context, w io.Writer) error {
			return o.adm.ExportAuditLog(ctx, system, admin.ExportAuditLogParams{Format: admin.FormatCSV, EventFilter: admin.EventFilter{Action: string(auth.EventJobStarted)}}, w)
		},
		"results": func(ctx context.Context, w io.Writer) error { return o.adm.JobResults(ctx, system, id, w) },
	} {
		for _, room := range []int{0, 1 << 12, 1 << 16} {
			if room > 0 && strings.HasPrefix(name, "few") {
				break // it has space for them
			}
			if err := write(t.Context(), &full{room}); !errors.Is(err, errFull) {
				t.Errorf("%s, with room for %d bytes: %v", name, room, err)
			}
		}
		for k := 1; ; k++ {
			failed := ""
			tap.Reset(storetap.Hooks{
				Background: true,
				Skip:       func(ctx context.Context, _ string) bool { return ctx.Value(ledgerKey{}) == nil },
				Fault: func(_ context.Context, method string, n int) storetap.Fault {
					if n != k {
						return storetap.NoFault
					}
					failed = method
					return storetap.FailsBefore
				},
			})
			err := write(context.WithValue(t.Context(), ledgerKey{}, true), io.Discard)
			tap.Reset(storetap.Hooks{})
			if failed == "" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			if !errors.Is(err, auth.CodeUnavailable) {
				t.Errorf("%s, where call %d, %s, fails: %v", name, k, failed, err)
			}
		}
	}
}
