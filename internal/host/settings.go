package host

import (
	"context"
	"encoding/json"

	"github.com/authmount/auth/store"
)

// Settings reads and changes the settings of the running service, and diagnoses it.
type Settings interface {
	// Settings lists the settings that result from a stored document, in the order of their
	// declarations.
	Settings(stored store.StoredSettings) ([]Setting, error)
	// EditSettings changes a document: values as the wire has them, by name; null removes
	// the stored value. Errors: validation_failed.
	EditSettings(stored store.StoredSettings, changes map[string]json.RawMessage) (SettingsEdit, error)
	// LetsIn reports whether a user could sign in before an edit and after it. factor asks
	// for a second factor, whatever the settings say.
	LetsIn(e SettingsEdit, c store.Credentials, factor bool) (before, after bool)
	// ReadSettings puts settings that were just written in force in this process. If they
	// cannot be read now, they come into force as in the other processes, within a second.
	ReadSettings(ctx context.Context)
	// HasProvider reports whether there is a provider of a name.
	HasProvider(name string) bool
	// ReachProvider asks a provider for its discovery document and its keys, or, if it has
	// neither, whether it answers at all. detail describes the finding.
	ReachProvider(ctx context.Context, name string) (detail string, err error)
	// Diagnose reports how the service is doing. ctx comes from HTTP.Seen.
	Diagnose(ctx context.Context) (Diagnosis, error)
}

// SettingKind is the type of a setting's values.
type SettingKind string

// The kinds of settings.
const (
	SettingSwitch  SettingKind = "switch"  // true or false
	SettingNumber  SettingKind = "number"  // an integer
	SettingSeconds SettingKind = "seconds" // an integer
	SettingList    SettingKind = "list"    // of texts
	SettingText    SettingKind = "text"
	SettingTexts   SettingKind = "texts" // an object of texts
)

// SettingDeclaration declares a setting, independent of an Auth.
type SettingDeclaration struct {
	Name        string
	Kind        SettingKind
	Label       string // in English
	Description string
	Min         int64 // of a number or of seconds
	MaxEntries  int   // of a list or texts
	Example     any   // of a list, a text or texts, as JSON
}

// Setting is one setting, given the options and a stored document.
type Setting struct {
	Name   string
	Value  any    // as the wire has it
	Source string // "option", "store" or "default"
	Locked bool   // it cannot be stored
	Why    string // the reason, if it is locked
}

// SettingsEdit is a document that was changed.
type SettingsEdit struct {
	Document []byte
	Changes  map[string]store.FieldChange // of what is in force, by name
	Private  any                          // the settings before and after
}

// Keys finds API keys.
type Keys interface {
	// GivenKey is the secret key by which a request was let through as Operating.
	GivenKey(ctx context.Context) (string, bool)
	// SecretKey is the key of a text, as it is now; a key of WithSecretKeys has no ID.
	// Errors: invalid_api_key, rate_limited.
	SecretKey(ctx context.Context, text string) (store.APIKey, error)
	// SecretKeys are those of WithSecretKeys.
	SecretKeys() []store.APIKey
	// SecretKeyNamed is the key of the options with a name. named reports whether the name
	// has the form of such a key's, there whether the options still have the key.
	SecretKeyNamed(name string) (key store.APIKey, named, there bool)
	// ForgetKeys makes this process read the public keys again.
	ForgetKeys()
}

// Jobs runs work that outlives a request.
type Jobs interface {
	// Behind runs f in the background until Close, which waits for it.
	Behind(f func(ctx context.Context))
	// SealJob encrypts the input of a job, for that job only.
	SealJob(jobID string, plain []byte) []byte
	// OpenJob reads the output of SealJob, also under a former secret.
	OpenJob(jobID string, sealed []byte) ([]byte, error)
	// ForJob is the context of a job's work, whose events have the job's id as request id.
	ForJob(ctx context.Context, id string) context.Context
	// ImportsAtOnce reports whether ImportAll creates users in one step.
	ImportsAtOnce() bool
	// ImportAll creates users in one step of the store, and reports for each why it was
	// not created. The error is errors.ErrUnsupported if users have to be created one
	// after the other.
	ImportAll(ctx context.Context, c store.CreateUsers) ([]error, error)
}
