package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth/store"
)

// many adds accounts in one step.
func many(t *testing.T, s *Store, n int) {
	t.Helper()
	_, err := s.writer.ExecContext(t.Context(), fmt.Sprintf(`
		with recursive n (i) as (select 1 union all select i + 1 from n where i < %d)
		insert into auth_users (id, email, email_key, full_name, name_key, user_metadata, app_metadata, password_hash, mfa_enabled, created_at, updated_at, revision, credential_revision, notes, sequence, password_sequence, password_added_by, email_sequence, email_added_by, email_verified_sequence, email_verified_added_by, phone_sequence, phone_added_by, phone_verified_sequence, phone_verified_added_by, accepted_sequence)
		select printf('%%08d', i), printf('user%%d@example.com', i), printf('user%%d@example.com', i), 'A Name', 'a name', '{}', '{}', 'hash', 0, i, i, 0, 0, '', 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 from n`, n))
	must(t, err)
}

// Exports that overlap without a pause, so that there is always a reader, do not keep the log
// from starting anew. Neither export nor changes fail.
func TestLogStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	const accounts, pages = 50_000, 2000
	filled, err := Open(path)
	must(t, err)
	many(t, filled, accounts)
	must(t, filled.Close()) // with its log
	s, err := Open(path, func(c *connector) { c.restart = pages })
	must(t, err)
	defer s.Close() //nolint:errcheck // of a test
	var written atomic.Bool
	var exports sync.WaitGroup
	var rows atomic.Int64
	for range 2 {
		exports.Go(func() {
			for complete := 0; complete == 0 || !written.Load(); complete++ {
				q := store.UserQuery{Sort: store.SortCreated, Limit: 1000}
				for {
					page, err := s.ListUserRows(t.Context(), q)
					if err != nil {
						t.Error(err)
						return
					}
					rows.Add(int64(len(page)))
					if len(page) < q.Limit {
						break
					}
					q.After = q.Cursor(page[len(page)-1].User)
				}
			}
		})
	}
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		must(t, err)
		return info.Size()
	}
	const limit = pages * 4096 * 3 // readers of a busy machine can outlast a wait, which doubles the size of the next
	largest := int64(0)
	for i := range 100 { // of about 100 pages each, which fill several logs
		_, err := s.writer.ExecContext(t.Context(), `update auth_users set updated_at = updated_at + 1 where created_at % 500 = ?`, i)
		must(t, err)
		largest = max(largest, size())
	}
	written.Store(true)
	exports.Wait()
	if largest > limit {
		t.Errorf("the log grew to %d MB", largest>>20)
	}
	if rows.Load() < 2*accounts {
		t.Errorf("%d rows exported", rows.Load())
	}
	t.Logf("largest log %d MB, %d rows exported", largest>>20, rows.Load())
}
