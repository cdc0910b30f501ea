package admin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// line is a client's connection that fails in different ways, by the errors of each.
type line struct {
	*httptest.ResponseRecorder
	deadline, write, flush error
	flushed                int
	waits                  time.Time
}

func (l *line) SetWriteDeadline(t time.Time) error {
	l.waits = t
	return l.deadline
}

func (l *line) Write(b []byte) (int, error) {
	if l.write != nil {
		return 0, l.write
	}
	return l.ResponseRecorder.Write(b)
}

func (l *line) FlushError() error {
	l.flushed++
	return l.flush
}

// A download continues where the server's connections support less than others, and stops
// where the client's connection fails: the part that was sent does not look complete then.
func TestDownloadsOverEveryLine(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.adm.ExportPage(2)
	o.crowd("many", 5)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.written()
	gone := errors.New("the client is gone")
	for _, path := range []string{"/users/export", "/users/export?format=csv", "/audit-logs/export", "/audit-logs/export?format=csv", "/jobs/" + o.aJob() + "/results"} {
		for name, c := range map[string]struct {
			line line
			ends bool
		}{
			"as it should be":             {line{}, false},
			"which has no deadlines":      {line{deadline: fmt.Errorf("%w: x", http.ErrNotSupported)}, false},
			"which flushes by itself":     {line{flush: fmt.Errorf("%w: x", http.ErrNotSupported)}, false},
			"of which the deadline fails": {line{deadline: gone}, true},
			"of which writing fails":      {line{write: gone}, true},
			"of which flushing fails":     {line{flush: gone}, true},
		} {
			c.line.ResponseRecorder = httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/admin"+path, http.NoBody)
			owner.Sign(r)
			began := time.Now()
			ended := func() (v any) {
				defer func() { v = recover() }()
				o.mux.ServeHTTP(&c.line, r)
				return nil
			}()
			if (ended == http.ErrAbortHandler) != c.ends || !c.ends && ended != nil { //nolint:errorlint // the very one
				t.Errorf("%s over a line %s ends with %v", path, name, ended)
			}
			if c.ends {
				continue
			}
			if lines := strings.Count(c.line.Body.String(), "\n"); c.line.Code != 200 || lines < 1 || c.line.flushed == 0 || strings.HasPrefix(path, "/users") && c.line.flushed < 3 {
				t.Errorf("%s over a line %s: %d, %d lines, flushed %d times", path, name, c.line.Code, lines, c.line.flushed)
			}
			if wait := c.line.waits.Sub(began); wait < 30*time.Second || wait > 2*time.Minute {
				t.Errorf("%s: a client has %v for a part", path, wait)
			}
		}
	}
}

// Both forms of an export have every account of every page, each once.
func TestExportsAreWhole(t *testing.T) {
	t.Parallel()
	for _, page := range []int{1, 2, 5, 6, 7} {
		o := newOffice(t, memstore.New())
		o.adm.ExportPage(page)
		want := o.crowd("many", 6)
		for _, format := range []string{admin.FormatNDJSON, admin.FormatCSV} {
			var text strings.Builder
			if err := o.adm.ExportUsers(t.Context(), admin.System("test").Accepting(), admin.ExportUsersParams{Format: format, Fields: []string{"id"}}, &text); err != nil {
				t.Fatal(err)
			}
			for _, id := range want {
				if strings.Count(text.String(), id) != 1 {
					t.Errorf("%s in pages of %d: %s is in it %d times", format, page, id, strings.Count(text.String(), id))
				}
			}
		}
	}
}
