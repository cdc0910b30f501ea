package admin

import (
	"testing"
	"time"

	"github.com/authmount/auth"
)

// Figures that nothing else shows, or by their names only: whoever changes one means to,
// and changes what is told of it, too.
func TestFiguresAreAsDecided(t *testing.T) {
	const day = 24 * time.Hour
	for what, c := range map[string]struct{ is, want time.Duration }{
		"a job is one process's":                  {jobLease, 15 * time.Second},
		"between two looks for jobs":              {jobPoll, 5 * time.Second},
		"a job is received":                       {jobWait, time.Hour},
		"results of a job can be read":            {jobKept, 7 * day},
		"what was said of a session holds":        {seenFor, time.Second},
		"clocks of logins elsewhere are ahead":    {clockSkew, time.Minute},
		"a repetition is known":                   {keptRepetitions, day},
		"a client takes for a part of an upload":  {uploadPause, 30 * time.Second},
		"a client takes for a part of a download": {downloadPause, 30 * time.Second},
		"two secrets of a key are good, at most":  {maxOverlap, 30 * day},
		"a key is old":                            {KeyAgeing, 365 * day},
		"the longest range of figures of hours":   {maxHours, 31 * day},
		"the longest range of figures of days":    {maxDays, 400 * day},
		"in which an actor's jobs are counted":    {jobRate.Per, time.Hour},
	} {
		if c.is != c.want {
			t.Errorf("%s: %s, not %s", what, c.is, c.want)
		}
	}
	for what, c := range map[string]struct{ is, want int64 }{
		"rows of a chunk":                          {chunkRows, 200},
		"rows of a chunk that is made in one step": {importedRows, 500},
		"bytes of the lines of a chunk":            {chunkBytes, 1 << 20},
		"chunks that are kept at once":             {chunksAtOnce, 10},
		"chunks that are planned":                  {workAhead, 3},
		"bytes of a line of an import":             {maxImportLine, 262144},
		"rows of an import":                        {maxImportRows, 1_000_000},
		"bytes of an import":                       {maxImportSize, 4294967296},
		"accounts that are named at once":          {maxBulk, 1000},
		"accounts that a filter picks":             {maxSelection, 10_000},
		"sessions that are ended at once":          {maxRevoked, 1000},
		"sessions that one step ends":              {revokedAtOnce, 5000},
		"events of a page of an export":            {exportPage, 500},
		"users of a page of an export":             {usersAtOnce, 1000},
		"rows of a page, by default":               {defaultPage, 50},
		"rows of a page, at most":                  {maxPage, 200},
		"tries at an operation":                    {attempts, 20},
		"bytes of a reason":                        {maxReason, 500},
		"bytes of a name of a key":                 {maxKeyName, 100},
		"networks of a key":                        {maxNetworks, 100},
		"keys that are looked at":                  {keysLooked, 2000},
		"keys of which the age is told":            {MaxKeyAges, 50},
		"bytes of who an actor elsewhere is":       {maxIdentity, 255},
		"bytes of the key of a repetition":         {maxIdempotencyKey, 255},
		"bytes of a name of a permission":          {maxPermissionName, 64},
		"roles":                                    {maxRoles, 500},
		"permissions of a role":                    {maxRolePermissions, 500},
		"jobs of an actor in an hour":              {int64(jobRate.Burst), 120},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, not %d", what, c.is, c.want)
		}
	}
	for _, c := range []struct{ asked, got int }{{-1, 50}, {0, 50}, {1, 1}, {199, 199}, {200, 200}, {201, 200}} {
		if n := pageSize(c.asked); n != c.got {
			t.Errorf("a page of %d has %d, not %d", c.asked, n, c.got)
		}
	}
	if !forever.Equal(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) || jobRate != (auth.Rate{Burst: 120, Per: time.Hour}) {
		t.Errorf("%v, %v", forever, jobRate)
	}
}
