package admin

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// filled returns a nonzero value of a type.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	}
	return v
}

// Each writable field of an account, alone, belongs to its declared group. A new field
// belongs to none until it is added here.
func TestEachFieldAsksForWhatItIs(t *testing.T) {
	t.Parallel()
	ofNew := map[string]string{
		"EmailVerified": "credentials", "EmailVerifiedAt": "credentials", "PhoneVerified": "credentials", "PhoneVerifiedAt": "credentials",
		"PasswordHash": "credentials", "TOTPSecret": "credentials", "UserHandle": "credentials", "Passkeys": "credentials", "Identities": "credentials", "Roles": "roles", "BannedUntil": "ban",
	}
	var none host.ImportUser
	for _, field := range reflect.VisibleFields(reflect.TypeFor[host.ImportUser]()) {
		p := none
		reflect.ValueOf(&p).Elem().FieldByIndex(field.Index).Set(filled(field.Type))
		if got := kindOfFields(fieldsOfNew(p)); got != ofNew[field.Name] {
			t.Errorf("%s of a new account: %q, want %q", field.Name, got, ofNew[field.Name])
		}
	}
	ofPatch := map[string]string{
		"Email": "credentials", "EmailVerifiedAt": "credentials", "Phone": "credentials", "PhoneVerifiedAt": "credentials", "PasswordHash": "credentials",
		"FullName": "profile", "UserMetadata": "profile", "AppMetadata": "profile", "Roles": "roles", "BannedUntil": "ban",
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[store.UserPatch]()) {
		var p store.UserPatch
		reflect.ValueOf(&p).Elem().FieldByIndex(field.Index).Set(filled(field.Type))
		if got := kindOfFields(fieldsOfPatch(p)); got != ofPatch[field.Name] {
			t.Errorf("%s of a patch: %q, want %q", field.Name, got, ofPatch[field.Name])
		}
	}
	if n, p := kindOfFields(fieldsOfNew(none)), kindOfFields(fieldsOfPatch(store.UserPatch{})); n != "" || p != "" {
		t.Errorf("nothing is %q of a new account, and %q of a patch", n, p)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[UpdateUserParams]()) {
		var p UpdateUserParams
		reflect.ValueOf(&p).Elem().FieldByIndex(field.Index).Set(filled(field.Type))
		if want := slices.Contains([]string{"Email", "EmailVerified", "Phone", "PhoneVerified"}, field.Name); p.credentials() != want {
			t.Errorf("%s is a way in: %t", field.Name, p.credentials())
		}
	}
}

func kindOfFields(f writtenFields) string {
	var kinds []string
	for kind, so := range map[string]bool{"profile": f.profile, "credentials": f.credentials, "ban": f.ban, "roles": f.roles != nil} {
		if so {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}

// Some refusals stop an operation on many accounts; all others concern the one account.
func TestWhatStopsAll(t *testing.T) {
	t.Parallel()
	stops := []auth.Code{
		auth.CodeSessionEnded, auth.CodeUserBanned, auth.CodeInvalidAPIKey, auth.CodeNotAdmin, auth.CodeMissingPermission, auth.CodeInsufficientAAL, auth.CodeReauthNeeded, auth.CodeUnavailable,
	}
	codes := slices.Concat(stops, []auth.Code{auth.CodeInternal, auth.CodeRateLimited})
	for _, e := range endpoints() {
		codes = append(codes, e.op.failures()...)
	}
	for _, code := range codes {
		if got := stopsAll(fmt.Errorf("wrapped: %w", &auth.Error{Code: code})); got != slices.Contains(stops, code) {
			t.Errorf("%s stops all: %t", code, got)
		}
	}
	if !stopsAll(&auth.Error{Code: auth.CodeValidationFailed, Fields: map[string]string{"Idempotency-Key": "x"}}) || stopsAll(nil) || stopsAll(errors.New("another")) {
		t.Error("a key of another request does not stop all, or no error of Authmount's does")
	}
}

// The small rules, by tables.
func TestSmallRules(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{-1: 50, 0: 50, 1: 1, 49: 49, 199: 199, 200: 200, 201: 200, 1 << 30: 200} {
		if got := pageSize(n); got != want {
			t.Errorf("a page of %d has %d", n, got)
		}
	}
	for _, c := range [][]string{ // wanted, the permission that grants it, those held
		{"a.b", "a.b", "*", "a.*", "a.b"}, {"a.b", "a.b", "a.b"}, {"a.b", "a.*", "a.*", "b.*"}, {"a.b", "*", "*"}, {"a.b", "", "b.*", "a.c"}, {"a.b", ""},
	} {
		if got := grantingPermission(c[2:], c[0]); got != c[1] {
			t.Errorf("%s is held by %q of %v, want %q", c[0], got, c[2:], c[1])
		}
	}
	for text, want := range map[string]string{"-5": "'-5", "5": "5", "true": "true", `"=1"`: `"\u003d1"`, "{}": "{}", "": ""} {
		if got := escapeFormulasJSON(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]bool{"x": true, "~": true, "!": true, "": true, " ": false, "a b": false, "\x7f": false, "ä": false, "\x1f": false} {
		if visible(text) != want {
			t.Errorf("%q is visible: %t", text, !want)
		}
	}
	for _, u := range []auth.User{{ID: "1", Email: "a@b"}, {ID: "1", Email: "a@b", Phone: "+49"}, {ID: "1", Phone: "+49", FullName: "Ada"}, {ID: "1", FullName: "Ada"}} {
		if got := labelOf(u); got != cmp.Or(u.Email, u.Phone, "1") {
			t.Errorf("%+v is called %s", u, got)
		}
	}
}
