package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A sweep deletes entries from the moment they expire, and not a moment before.
func TestSweepTakesNothingEarly(t *testing.T) {
	s, schema := openSchema(t)
	for table, row := range map[string]struct {
		last time.Time     // the latest time of an expired entry
		step time.Duration // to the earliest time of a kept entry
	}{
		"tokens": {now, time.Microsecond}, "sessions": {now, time.Microsecond}, "idempotency": {now, time.Microsecond}, "messages": {now, time.Microsecond},
		"jobs": {now, time.Microsecond}, "impersonations": {now, time.Microsecond}, "message_log": {now.Add(-168 * time.Hour), time.Microsecond},
		"devices": {now.Add(-9600 * time.Hour), time.Microsecond}, "counts": {now.Add(-9600*time.Hour - time.Microsecond), time.Microsecond},
		"active": {now.Add(-960*time.Hour).AddDate(0, 0, -1), 24 * time.Hour},
	} {
		for at, want := range map[time.Time]int{row.last: 1, row.last.Add(row.step): 0} {
			sql := strings.ReplaceAll(fmt.Sprintf(finished[table], 1, 1), "'epoch'", "'"+at.Format(time.RFC3339Nano)+"'")
			exec(t, s.Pool(), strings.ReplaceAll(sql, "auth.", schema+"."))
			if n, err := s.Sweep(t.Context(), now, 100); n != want || err != nil {
				t.Errorf("%s of %v: swept %d, %v", table, at, n, err)
			}
			exec(t, s.Pool(), "truncate "+schema+"."+table+" cascade")
		}
	}
}

// A job that runs is not swept, however long it takes.
func TestSweepSparesWhatRuns(t *testing.T) {
	s, schema := openSchema(t)
	exec(t, s.Pool(), strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf(finished["jobs"], 1, 2), "'done'", "'running'"), "auth.", schema+"."))
	if n, err := s.Sweep(t.Context(), now, 100); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}
