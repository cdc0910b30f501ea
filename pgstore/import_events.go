package pgstore

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// noteRows records events that must be recorded, passed as columns.
const noteRows = `select auth.note_rows($1::uuid[], $2::text[], $3::timestamptz[], $4::uuid[], $5::uuid[], $6::text[])`

// eventRows holds the parameters of noteRows.
type eventRows struct {
	ids      []string
	types    []string
	at       []time.Time
	users    []*string
	sessions []*string
	data     []string
}

func (c *eventRows) args() []any { return []any{c.ids, c.types, c.at, c.users, c.sessions, c.data} }

func (c *eventRows) add(e store.Event, data string) {
	c.ids, c.types, c.at = append(c.ids, e.ID), append(c.types, string(e.Type)), append(c.at, micro(e.At))
	c.users, c.sessions, c.data = append(c.users, orNull(e.UserID)), append(c.sessions, orNull(e.SessionID)), append(c.data, data)
}

// telling marshals the events of an import's rows while Postgres creates the users,
// before it is known which events are needed.
type telling struct {
	rows []store.ImportedRow
	data [][]string // one per event of each row
	err  error
	sync.WaitGroup
}

func tell(rows []store.ImportedRow) *telling {
	t := &telling{rows: rows, data: make([][]string, len(rows))}
	t.Go(func() {
		for n, row := range rows {
			for _, e := range row.Events {
				text, err := json.Marshal(dataOf(e))
				if err != nil {
					t.err = err
					return
				}
				t.data[n] = append(t.data[n], string(text))
			}
		}
	})
	return t
}

// of returns the events of the created users' rows.
func (t *telling) of(made []bool) (*eventRows, error) {
	t.Wait()
	c := &eventRows{}
	for n, row := range t.rows {
		if !made[n] || t.err != nil {
			continue
		}
		for i, e := range row.Events {
			if e.UserID == "" {
				e.UserID = row.User.ID
			}
			c.add(e, t.data[n][i])
		}
	}
	return c, t.err
}
