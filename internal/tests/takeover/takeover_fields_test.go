package takeover_test

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// Fates of the fields of an account at a takeover. Every other text is the reason for which
// the field keeps its value.
const (
	cleared = ""           // the field has its zero value afterwards
	shown   = "of the new" // the new holder has just shown it
)

// fates returns the fate of every field of the records that a store keeps about an account.
func fates() map[reflect.Type]map[string]string {
	return map[reflect.Type]map[string]string{
		reflect.TypeFor[store.User](): {
			"ID": "names the account", "CreatedAt": "history", "UpdatedAt": "history", "LastSignInAt": "history", "Revision": "counts", "CredentialRevision": "counts", "Sequence": "counts",
			"Handle":      "another one, so that authenticators of the former holder do not name the account",
			"AppMetadata": "the application's", "Roles": "the operators' decision; those of an operator wait for an acceptance", "BannedUntil": "the operators' decision", "Claims": "not stored",
			"Email": shown, "EmailVerifiedAt": shown, "EmailSequence": shown, "EmailAddedBy": "of a changed address", "EmailVerifiedSequence": shown, "EmailVerifiedAddedBy": cleared,
			"Phone": cleared, "PhoneVerifiedAt": "an account with a verified number keeps its holder", "PhoneSequence": cleared, "PhoneAddedBy": cleared, "PhoneVerifiedSequence": "as PhoneVerifiedAt", "PhoneVerifiedAddedBy": cleared,
			"FullName": cleared, "UserMetadata": cleared, "Identities": cleared, "MFAEnabled": cleared, "PasswordSequence": cleared, "PasswordAddedBy": cleared,
			"AcceptedSequence": cleared, "AcceptedUntil": "the end of no acceptance",
		},
		reflect.TypeFor[store.Credentials](): {
			"User": "above", "PasswordHash": cleared, "KnownDevice": cleared, "TrustedUntil": cleared, "Notes": "the operators'",
		},
		reflect.TypeFor[store.UserRecords](): {
			"Devices": cleared, "Pending": cleared, "Messages": "each has its address, and is dropped with its token",
		},
		reflect.TypeFor[store.Factors](): {"List": cleared, "RecoveryLeft": cleared, "Recovery": cleared},
	}
}

// A takeover keeps nothing personal and no sign-in method of the former holder. A new field
// of these records fails until it has a fate here.
func TestTakeoverClearsEveryField(t *testing.T) {
	for name, takeOver := range map[string]func(w *harness.World){
		"no, not me": func(w *harness.World) {
			body := url.Values{"token": {w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)}, "disown": {"1"}}
			w.Do("POST", "/verify-email", body.Encode(), harness.Form, harness.Browser).Want(200)
		},
		"a code": func(w *harness.World) {
			code := w.Mail(w.T, harness.AdaMail, auth.KindVerifyEmail).Code
			w.Do("POST", "/verify-email", map[string]any{"email": harness.AdaMail, "code": code}).Want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			s := w.Do("POST", "/signup", map[string]any{
				"email": harness.AdaMail, "password": harness.GoodPassword, "full_name": "Eve", "user_metadata": map[string]any{"a": "b"},
			}, harness.OnDevice(harness.Laptop)).Session()
			id, phone, at, note := s.User.ID, "+4930555555", w.Clock.Now(), "noted"
			w.Patch(id, store.UserPatch{
				Phone: &phone, Link: &auth.Identity{ID: uuid.NewString(), Provider: "facebook", Subject: "669", CreatedAt: at},
				AppMetadata: map[string]any{"a": "b"}, Roles: &[]string{"editor"}, Notes: &note,
			})
			in := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
			w.Enrol(in.AccessToken)
			w.Do("PATCH", "/me", map[string]any{"phone": "+4930777777"}, harness.Bearer(in.AccessToken)).Want(200)
			w.Patch(id, store.UserPatch{Accept: true})
			before := recordsOf(w, id, "")
			device := before[1].(store.UserRecords).Devices[0].Device
			w.Clock.Advance(time.Second)
			for _, record := range recordsOf(w, id, device) {
				eachField(record, func(name string, empty bool) {
					if fate, known := fates()[reflect.TypeOf(record)][name]; known && fate == cleared && empty && !strings.HasSuffix(name, "AddedBy") && name != "TrustedUntil" {
						t.Fatalf("%T.%s is empty before the takeover", record, name)
					}
				})
			}
			took := w.Clock.Now()
			former, err := w.Store.User(t.Context(), store.ByID(id))
			takeOver(w)
			if u, failed := w.Store.User(t.Context(), store.ByID(id)); err != nil || failed != nil || former.Handle == "" || u.Handle == former.Handle || u.Handle == "" {
				t.Errorf("user handle %q after %q, %v, %v", u.Handle, former.Handle, err, failed)
			}
			for _, record := range recordsOf(w, id, device) {
				if held, ok := record.(store.UserRecords); ok { // what the takeover itself sends is the new holder's
					held.Pending = slices.DeleteFunc(held.Pending, func(p store.TokenRecord) bool { return !p.CreatedAt.Before(took) })
					record = held
				}
				eachField(record, func(name string, empty bool) {
					switch fate, known := fates()[reflect.TypeOf(record)][name]; {
					case !known:
						t.Errorf("%T.%s is new: say in fates whether a takeover clears it", record, name)
					case fate == cleared && !empty:
						t.Errorf("%T.%s is set after a takeover: %+v", record, name, record)
					case fate == shown && empty:
						t.Errorf("%T.%s is empty after a takeover", record, name)
					}
				})
			}
			live, err := w.Store.Sessions(t.Context(), id, w.Clock.Now())
			if err != nil || len(live) > 0 {
				t.Errorf("%d live sessions, %v", len(live), err)
			}
		})
	}
}

// recordsOf reads everything that the store keeps about an account, as its user knows it
// from a device.
func recordsOf(w *harness.World, id, device string) []any {
	w.T.Helper()
	key := store.ByID(id)
	key.Device = device
	c, held, err := w.Store.Account(w.T.Context(), key, w.Clock.Now())
	if err != nil {
		w.T.Fatal(err)
	}
	factors, _ := store.Capability[store.FactorStore](w.Store)
	has, err := factors.Factors(w.T.Context(), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return []any{c.User, held, c, has}
}

// eachField calls f with the name of every field of a record.
func eachField(record any, f func(name string, empty bool)) {
	r := reflect.ValueOf(record)
	for i := range r.NumField() {
		v := r.Field(i)
		list := v.Kind() == reflect.Map || v.Kind() == reflect.Slice
		f(r.Type().Field(i).Name, v.IsZero() || list && v.Len() == 0)
	}
}
