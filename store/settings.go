package store

import (
	"context"
	"time"
)

// SettingsStore keeps the settings that are changed while the service runs: one
// document, which every instance of the service reads.
type SettingsStore interface {
	// Settings reads the document. One that nobody has written is empty, at
	// revision 0. It is read once a second by each instance.
	Settings(ctx context.Context) (StoredSettings, error)
	// PutSettings replaces the document and raises its revision, if it is at the
	// revision that was read; otherwise ErrStale. With a nil Document it stays as it
	// is, whatever its revision, and only what comes with the change is recorded.
	PutSettings(ctx context.Context, c PutSettings) (StoredSettings, error)
}

// StoredSettings is the document, at one revision.
type StoredSettings struct {
	Revision  int64  // rises with every change
	Document  []byte // a JSON object, which the store gives back byte by byte; empty: none was written
	UpdatedAt time.Time
}

// PutSettings is the parameter of SettingsStore.PutSettings.
type PutSettings struct {
	Change
	Revision int64 // the document is at this one, else ErrStale
	Document []byte
}

// DiagnosticStore tells how a store is doing, for operators.
type DiagnosticStore interface {
	Diagnose(ctx context.Context) (StoreDiagnosis, error)
}

// StoreDiagnosis is how a store is doing. What does not apply is zero.
type StoreDiagnosis struct {
	Now     time.Time // by the store's own clock
	Schema  int       // the version of its schema
	Waiting int       // messages that wait to be sent, counted up to 10,000
	Oldest  time.Time // when the oldest of them was recorded
	Feeds   int       // feeds of revocations that this process follows
	FeedAt  time.Time // when one of them looked last
}
