package store

import (
	"context"
	"strings"
	"time"
)

// ProjectStore keeps the data of the whole service: permissions of roles, API keys, the
// settings that are changed at run time, and statistics. The rules of [Store] apply.
//
// The settings are one document, which every instance of the service reads. Each instance
// counts statistics in memory and adds them every few seconds, so that no sign-in waits for
// a row that all sign-ins change.
type ProjectStore interface {
	// Roles returns the whole table, sorted by name, and its revision. A table that never
	// changed is empty, at revision 0.
	Roles(ctx context.Context) (RoleTable, error)
	// PutRole adds or replaces a role and raises the table's revision. It marks the name
	// as privileged, or removes the mark.
	PutRole(ctx context.Context, c PutRole) (RoleTable, error)
	// DeleteRole removes a role and raises the table's revision. The mark of its name
	// stays. Errors: ErrNotFound if there is none; a *ConflictError of "role" while a user
	// has it.
	DeleteRole(ctx context.Context, c DeleteRole) (RoleTable, error)

	// Key reads a key, also a revoked or expired one. ErrNotFound if there is none.
	Key(ctx context.Context, id string) (APIKey, error)
	// Keys lists keys, newest first. The list is empty if there are none.
	Keys(ctx context.Context, q KeyQuery) ([]APIKey, error)
	// PutKey adds a key, or replaces the one with its id and raises its revision. It
	// ignores CreatedAt, Revision, LastUsedAt, TextUser and TextSequence. Errors, in
	// this order: ErrStale if IfRevision is set and the stored key does not exist or has
	// another revision; a *ConflictError of "key" if another key has the Hash. PreviousHash
	// is not compared.
	PutKey(ctx context.Context, c PutKey) (APIKey, error)
	// UseKey sets LastUsedAt of a key to at, unless it is less than a minute before at, or later.
	// It changes nothing else, in particular not the revision. A missing key is no error.
	UseKey(ctx context.Context, id string, at time.Time) error

	// Settings returns the document. A document that was never written is empty, at
	// revision 0. Each instance calls it once a second.
	Settings(ctx context.Context) (StoredSettings, error)
	// PutSettings replaces the document and raises its revision. ErrStale if the document
	// is not at Revision. With a nil Document it changes nothing, at any revision,
	// and only records the events and messages of the change.
	PutSettings(ctx context.Context, c PutSettings) (StoredSettings, error)

	// AddCounts adds to counts and records active accounts. An account counts once in a
	// day, in a week and in a month, over all instances. All of it is applied, or nothing.
	AddCounts(ctx context.Context, c AddCounts) error
	// Counts lists sums by interval, in the order of metric, label and time, without zeros.
	Counts(ctx context.Context, q CountQuery) ([]Count, error)
	// Totals counts the current accounts: exactly up to CountedExactly, above that by an
	// estimate.
	Totals(ctx context.Context, now time.Time) (Totals, error)
}

// RoleTable is every role, at one revision.
type RoleTable struct {
	Revision   int64 // rises with every change of any role
	Roles      []RolePermissions
	Privileged []string // every name that was last put as privileged, also of deleted roles, sorted
}

// RolePermissions is the set of permissions of one role.
type RolePermissions struct {
	Name        string
	Description string
	Permissions []string
	Privileged  bool // the mark of the name, see RoleTable.Privileged
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// PutRole is the parameter of ProjectStore.PutRole. The store keeps CreatedAt of an
// existing role; otherwise both times are Change.Now.
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
	IfRevision *int64 // of the key that is replaced; nil: any, or none
}

// APIKey is an API key. Only a hash of its text is stored.
type APIKey struct {
	ID          string // a UUID
	Name        string
	Public      bool   // identifies an application and permits nothing by itself
	Environment string // as in the key's text
	Hash        []byte // unique
	Scopes      []string
	Networks    []string // CIDR; the only networks that may use the key; empty: all
	CreatedBy   string   // a user's id; empty: code of the application
	Adopted     bool     // the key belongs to the service, independently of its creator
	HourlyLimit int      // accounts that it may ban, delete, sign out or mail in an hour; 0: the default
	Revision    int64    // the first is 0
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	RevokedAt   time.Time // zero: not revoked
	LastUsedAt  time.Time // to the minute; zero: never
	RotatedAt   time.Time // when the current text was created; zero: CreatedAt

	// The session that created the current text, if any: its user and its Sequence. The
	// store sets them from Change.By with every new Hash, and ignores them in parameters.
	TextUser     string
	TextSequence int64

	// The hash before a rotation, valid until PreviousUntil.
	PreviousHash  []byte
	PreviousUntil time.Time
}

// Live reports whether the key may be used at now.
func (k *APIKey) Live(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Since returns the instant at which the current text was created.
func (k *APIKey) Since() time.Time {
	if k.RotatedAt.IsZero() {
		return k.CreatedAt
	}
	return k.RotatedAt
}

// OfService reports whether only the key's scopes limit it. Other keys are also limited by
// their creator's permissions.
func (k *APIKey) OfService() bool { return k.Adopted || k.CreatedBy == "" }

// KeyQuery picks API keys that match all of its fields. A zero field matches all.
type KeyQuery struct {
	Public *bool
	LiveAt time.Time  // neither revoked nor expired then
	After  *KeyCursor // for the next page
	Limit  int        // required, from 1
}

// KeyCursor is a place in the list of API keys, which is sorted by (CreatedAt, ID), newest
// first.
type KeyCursor struct {
	CreatedAt time.Time `json:"created_at"`
	ID        string    `json:"id"`
}

// Cursor returns the place after a key.
func (k *APIKey) Cursor() *KeyCursor { return &KeyCursor{CreatedAt: k.CreatedAt, ID: k.ID} }

// Compare compares places in the list, for stores that sort in Go. It is negative if c
// comes first, which is the newer one.
func (c *KeyCursor) Compare(d *KeyCursor) int {
	if n := d.CreatedAt.Compare(c.CreatedAt); n != 0 {
		return n
	}
	return strings.Compare(d.ID, c.ID)
}

// StoredSettings is the document, at one revision.
type StoredSettings struct {
	Revision  int64  // rises with every change
	Document  []byte // a JSON object, returned byte by byte as it was written; empty: never written
	UpdatedAt time.Time
}

// PutSettings is the parameter of ProjectStore.PutSettings.
type PutSettings struct {
	Change
	Revision int64 // the expected revision, else ErrStale
	Document []byte
}

// Metric is a counted kind of event.
type Metric string

// The metrics, with their labels.
const (
	MetricSignUps        Metric = "sign_ups"          // the method, or the provider
	MetricSignIns        Metric = "sign_ins"          // the method, or the provider
	MetricSignInFailures Metric = "sign_in_failures"  // the error code
	MetricActiveUsers    Metric = "active_users"      // "day", "week", "month": an account counts at the first sign-in or refresh of each
	MetricFactors        Metric = "factors"           // "enabled", "disabled"
	MetricMessages       Metric = "messages_sent"     // the kind
	MetricMessageFailed  Metric = "messages_failed"   // the kind
	MetricLimits         Metric = "limits_hit"        // "guesses": of passwords and codes; "requests": all others
	MetricTokensReused   Metric = "tokens_reused"     //nolint:gosec // no credentials; no labels
	MetricDenied         Metric = "operations_denied" // no labels; operations of the admin side
)

// Metrics returns all metrics.
func Metrics() []Metric {
	return []Metric{MetricSignUps, MetricSignIns, MetricSignInFailures, MetricActiveUsers, MetricFactors, MetricMessages,
		MetricMessageFailed, MetricLimits, MetricTokensReused, MetricDenied}
}

// Count is how often something happened.
type Count struct {
	Metric Metric
	Label  string
	At     time.Time // the start of the hour, or of the requested interval, in UTC; of MetricActiveUsers: the start of the day, week or month
	N      int64
}

// Activity is a use of an account at an instant.
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

// Periods returns the starts of the day, week and month of t, in UTC, by label.
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
	Counts []Count // At is truncated to the hour
	Active []Activity
}

// CountQuery is the parameter of ProjectStore.Counts.
type CountQuery struct {
	Metrics  []Metric
	From, To time.Time // hours that start within: from, inclusive; to, exclusive
	By       Interval
}

// Interval is the length of time over which counts are summed.
type Interval string

// The intervals.
const (
	Hourly Interval = "hour"
	Daily  Interval = "day" // in UTC
	Whole  Interval = "all" // one sum, at CountQuery.From
)

// Totals is the number of accounts.
type Totals struct {
	Users      Total
	WithFactor Total // User.MFAEnabled
	Banned     Total
}

// Total is a number of rows.
type Total struct {
	N     int64
	Exact bool // false: an estimate, but at least CountedExactly if that many were counted
}

// CountedExactly is the number of rows up to which counts are exact.
const CountedExactly = 10_000
