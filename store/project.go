package store

import (
	"context"
	"strings"
	"time"
)

// ProjectStore keeps what belongs to the whole service: what roles permit, API keys,
// the settings that are changed while the service runs, and figures. The rules of
// [Store] apply.
//
// The settings are one document, which every instance of the service reads. Figures are
// counted by each instance in memory and added every few seconds, so that no sign-in
// waits for a row that all sign-ins change.
type ProjectStore interface {
	// Roles reads the whole table, sorted by name, and its revision. An empty
	// one that never changed has revision 0.
	Roles(ctx context.Context) (RoleTable, error)
	// PutRole adds or replaces a role and raises the table's revision.
	PutRole(ctx context.Context, c PutRole) (RoleTable, error)
	// DeleteRole removes a role and raises the table's revision. ErrNotFound if
	// there is none; a *ConflictError of "role" while a user has it.
	DeleteRole(ctx context.Context, c DeleteRole) (RoleTable, error)

	// Key reads a key, revoked and expired ones too. ErrNotFound if there is none.
	Key(ctx context.Context, id string) (APIKey, error)
	// Keys lists keys, newest first. None is an empty list.
	Keys(ctx context.Context, q KeyQuery) ([]APIKey, error)
	// PutKey adds a key, or replaces the one with its id and raises its revision;
	// CreatedAt, Revision and LastUsedAt of the parameter are the store's to set.
	// Another key with the same hash: a *ConflictError of "key". A revision that is
	// not IfRevision, or no key that has one: ErrStale.
	PutKey(ctx context.Context, c PutKey) (APIKey, error)
	// UseKey notes that a key is used at an instant, unless a use within the minute
	// before, or later, is noted. It changes nothing else of the key, its revision
	// among it. No such key is no error.
	UseKey(ctx context.Context, id string, at time.Time) error

	// Settings reads the document. One that nobody has written is empty, at
	// revision 0. It is read once a second by each instance.
	Settings(ctx context.Context) (StoredSettings, error)
	// PutSettings replaces the document and raises its revision, if it is at the
	// revision that was read; otherwise ErrStale. With a nil Document it stays as it
	// is, whatever its revision, and only what comes with the change is recorded.
	PutSettings(ctx context.Context, c PutSettings) (StoredSettings, error)

	// AddCounts adds to counts, and counts accounts as active: once in a day, in a
	// week and in a month, however often they come and to whichever instance. All of
	// it or nothing.
	AddCounts(ctx context.Context, c AddCounts) error
	// Counts lists sums by interval, in the order of metric, label and time; what is
	// zero is left out.
	Counts(ctx context.Context, q CountQuery) ([]Count, error)
	// Totals counts what there is now: exactly up to 10,000, beyond that about.
	Totals(ctx context.Context, now time.Time) (Totals, error)
}

// RoleTable is every role, at one revision.
type RoleTable struct {
	Revision int64 // rises with every change of any role
	Roles    []RolePermissions
}

// RolePermissions is what one role permits.
type RolePermissions struct {
	Name        string
	Description string
	Permissions []string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// PutRole is the parameter of ProjectStore.PutRole. CreatedAt of a role that is
// there stays; both times are Change.Now otherwise.
type PutRole struct {
	Change
	Role RolePermissions
}

// DeleteRole is the parameter of ProjectStore.DeleteRole.
type DeleteRole struct {
	Change
	Name string
}

// PutKey is the parameter of ProjectStore.PutKey.
type PutKey struct {
	Change
	Key        APIKey
	IfRevision *int64 // of the key that is replaced; nil: whatever there is
}

// APIKey is an API key, of which only a hash is kept.
type APIKey struct {
	ID          string // a UUID
	Name        string
	Public      bool   // it names an application and opens nothing by itself
	Environment string // as the key's text has it
	Hash        []byte // unique
	Scopes      []string
	Networks    []string // CIDR, from which alone it may be used; none: from anywhere
	CreatedBy   string   // a user's id, or empty: code of the application
	Adopted     bool     // it is the service's own, whatever becomes of who made it
	Revision    int64    // the first is 0
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	RevokedAt   time.Time // zero: not revoked
	LastUsedAt  time.Time // to the minute; zero: never
	RotatedAt   time.Time // since when its text is the present one; zero: since CreatedAt

	// The hash before a rotation, and until when it is good.
	PreviousHash  []byte
	PreviousUntil time.Time
}

// Live tells whether the key may be used at now.
func (k *APIKey) Live(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Since is since when its text is the present one.
func (k *APIKey) Since() time.Time {
	if k.RotatedAt.IsZero() {
		return k.CreatedAt
	}
	return k.RotatedAt
}

// OfService tells whether the key's scopes count alone. Those of any other are bounded
// by what the one who made it may do.
func (k *APIKey) OfService() bool { return k.Adopted || k.CreatedBy == "" }

// KeyQuery picks API keys. Fields at zero pick all; those set have to hold together.
type KeyQuery struct {
	Public *bool
	LiveAt time.Time  // not revoked, and not expired by then
	After  *KeyCursor // for the next page
	Limit  int        // required, from 1
}

// KeyCursor is a place in the list of API keys, which is in the order of (CreatedAt,
// ID), the newest first.
type KeyCursor struct {
	CreatedAt time.Time `json:"created_at"`
	ID        string    `json:"id"`
}

// Cursor is the place behind a key.
func (k *APIKey) Cursor() *KeyCursor { return &KeyCursor{CreatedAt: k.CreatedAt, ID: k.ID} }

// Compare is the order of the list, for stores that sort in Go.
func (c *KeyCursor) Compare(d *KeyCursor) int {
	if n := d.CreatedAt.Compare(c.CreatedAt); n != 0 {
		return n
	}
	return strings.Compare(d.ID, c.ID)
}

// StoredSettings is the document, at one revision.
type StoredSettings struct {
	Revision  int64  // rises with every change
	Document  []byte // a JSON object, which the store gives back byte by byte; empty: none was written
	UpdatedAt time.Time
}

// PutSettings is the parameter of ProjectStore.PutSettings.
type PutSettings struct {
	Change
	Revision int64 // the document is at this one, else ErrStale
	Document []byte
}

// Metric is what is counted.
type Metric string

// The metrics, with what their labels are.
const (
	MetricSignUps        Metric = "sign_ups"          // the method, or the provider
	MetricSignIns        Metric = "sign_ins"          // likewise
	MetricSignInFailures Metric = "sign_in_failures"  // the error code
	MetricActiveUsers    Metric = "active_users"      // "day", "week", "month": an account counts at the first sign-in or refresh of each
	MetricFactors        Metric = "factors"           // "enabled", "disabled"
	MetricMessages       Metric = "messages_sent"     // the kind
	MetricMessageFailed  Metric = "messages_failed"   // the kind
	MetricLimits         Metric = "limits_hit"        // "guesses": of passwords and codes; "requests": all others
	MetricTokensReused   Metric = "tokens_reused"     //nolint:gosec // no credentials; no labels
	MetricDenied         Metric = "operations_denied" // none: operations of the admin side
)

// Metrics are all of them.
func Metrics() []Metric {
	return []Metric{MetricSignUps, MetricSignIns, MetricSignInFailures, MetricActiveUsers, MetricFactors, MetricMessages,
		MetricMessageFailed, MetricLimits, MetricTokensReused, MetricDenied}
}

// Count is how often something happened.
type Count struct {
	Metric Metric
	Label  string
	At     time.Time // the begin of the hour, or of the interval asked for, in UTC
	N      int64
}

// Activity is that an account was active.
type Activity struct {
	UserID string
	At     time.Time
}

// The labels of MetricActiveUsers.
const (
	PeriodDay   = "day"
	PeriodWeek  = "week" // from Monday
	PeriodMonth = "month"
)

// Periods are the begins of the day, week and month that t is in, in UTC, by label.
func Periods(t time.Time) map[string]time.Time {
	y, m, d := t.UTC().Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	return map[string]time.Time{
		PeriodDay:   day,
		PeriodWeek:  day.AddDate(0, 0, -(int(day.Weekday())+6)%7),
		PeriodMonth: time.Date(y, m, 1, 0, 0, 0, 0, time.UTC),
	}
}

// AddCounts is the parameter of ProjectStore.AddCounts.
type AddCounts struct {
	Counts []Count // At is cut to the hour
	Active []Activity
}

// CountQuery is the parameter of ProjectStore.Counts.
type CountQuery struct {
	Metrics  []Metric
	From, To time.Time // hours that begin within: from, inclusive; to, exclusive
	By       Interval
}

// Interval is what counts are summed by.
type Interval string

// The intervals.
const (
	Hourly Interval = "hour"
	Daily  Interval = "day" // in UTC
	Whole  Interval = "all" // one sum, whose time is CountQuery.From
)

// Totals is what there is.
type Totals struct {
	Users      Total
	WithFactor Total // with an enabled factor
	Banned     Total
}

// Total is a number of rows.
type Total struct {
	N     int64
	Exact bool // false: about so many, and never fewer than CountedExactly if those were counted
}

// CountedExactly is up to how many rows are counted one by one.
const CountedExactly = 10_000
