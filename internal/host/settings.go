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
	// EditSettings changes a document. changes are values in the form of the wire, by
	// name; null removes the stored value. Errors: validation_failed.
	EditSettings(stored store.StoredSettings, changes map[string]json.RawMessage) (SettingsEdit, error)
	// CanSignIn reports whether a user could sign in before and after an edit. factor
	// requires a second factor regardless of the settings.
	CanSignIn(ctx context.Context, e SettingsEdit, c store.Credentials, factor bool) (before, after bool, err error)
	// ReloadSettings applies settings that were just written in this process. If they
	// cannot be read now, they apply within a second, as in the other processes.
	ReloadSettings(ctx context.Context)
	// HasProvider reports whether a provider exists.
	HasProvider(name string) bool
	// TestProvider fetches a provider's discovery document and keys, or, if it has
	// neither, checks that it responds. detail describes the result.
	TestProvider(ctx context.Context, name string) (detail string, err error)
	// Diagnose reports the state of the service. ctx comes from HTTP.WithFacts.
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
	Value  any    // in the form of the wire
	Source string // "option", "store" or "default"
	Locked bool   // it cannot be stored
	Why    string // the reason, if it is locked
}

// SettingsEdit is a changed document.
type SettingsEdit struct {
	Document []byte
	Changes  map[string]store.FieldChange // changes of the settings in force, by name
	Private  any                          // the settings before and after
}

// Keys finds API keys.
type Keys interface {
	// RequestKey returns the secret key with which a request was admitted as Operating.
	RequestKey(ctx context.Context) (string, bool)
	// SecretKey returns the current state of a secret key. A key of WithSecretKeys has no
	// ID. Errors: invalid_api_key, rate_limited.
	SecretKey(ctx context.Context, text string) (store.APIKey, error)
	// DecideKeys sets the function that returns the present permissions of a secret key.
	// Errors: invalid_api_key, and those of the store.
	DecideKeys(decide func(ctx context.Context, k store.APIKey) ([]string, error))
	// SecretKeys returns the keys of WithSecretKeys.
	SecretKeys() []store.APIKey
	// SecretKeyNamed returns the key of WithSecretKeys with a name. named reports whether
	// the name has the form of such names, there whether the key is still configured.
	SecretKeyNamed(name string) (key store.APIKey, named, there bool)
	// ReloadKeys makes this process read the public keys again.
	ReloadKeys()
}

// Jobs runs work that outlives a request.
type Jobs interface {
	// Background runs f in the background. Close cancels its context and waits for it.
	Background(f func(ctx context.Context))
	// SealJob encrypts the input of a job, for that job only.
	SealJob(jobID string, plain []byte) []byte
	// OpenJob decrypts a result of SealJob, also under a previous secret.
	OpenJob(jobID string, sealed []byte) ([]byte, error)
	// JobContext returns the context of a job's work. The request id of its events is the
	// job's id.
	JobContext(ctx context.Context, id string) context.Context
	// HasBulkImport reports whether ImportAll creates users in one step.
	HasBulkImport() bool
	// ImportAll creates users in one step of the store, and returns for each user why it
	// was not created. The error is errors.ErrUnsupported if users must be created one by
	// one.
	ImportAll(ctx context.Context, c store.CreateUsers) ([]error, error)
}
