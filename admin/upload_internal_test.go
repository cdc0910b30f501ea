package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// slowLine is a client's connection that is read from, with its deadlines.
type slowLine struct {
	*httptest.ResponseRecorder
	err  error
	till []time.Time
}

func (l *slowLine) SetReadDeadline(t time.Time) error {
	l.till = append(l.till, t)
	return l.err
}

// An upload is awaited part by part if connections have deadlines, is read if they have
// none, and ends if the client's connection fails.
func TestUploadsOverEveryLine(t *testing.T) {
	gone := errors.New("the client is gone")
	for name, c := range map[string]struct {
		err, ends error
		want      string
	}{
		"as it should be":             {nil, nil, "rows"},
		"which has no deadlines":      {fmt.Errorf("%w: x", http.ErrNotSupported), nil, "rows"},
		"of which the deadline fails": {gone, gone, ""},
	} {
		l := &slowLine{ResponseRecorder: httptest.NewRecorder(), err: c.err}
		began := time.Now()
		got, err := io.ReadAll(upload{strings.NewReader("rows"), http.NewResponseController(l)})
		if string(got) != c.want || !errors.Is(err, c.ends) || len(l.till) == 0 {
			t.Errorf("a line %s: %q, %v, %d deadlines", name, got, err, len(l.till))
		}
		for _, at := range l.till {
			if wait := at.Sub(began); wait < 30*time.Second || wait > time.Minute {
				t.Errorf("a line %s: a client has %s for a part", name, wait)
			}
		}
	}
}
