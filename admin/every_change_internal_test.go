package admin

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// Each field of a patch, alone, is in the audit log by its name, with its old and new
// value. Fields that other operations record themselves are not in it twice.
func TestEachEditIsRecorded(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"Email": "email: a@example.com, <nil>", "Phone": "phone: +491, <nil>", "FullName": "full_name: Ada, <nil>", "EmailVerifiedAt": "email_verified: true, false", "PhoneVerifiedAt": "phone_verified: true, false",
		"UserMetadata": "user_metadata: map[a:1], map[]", "AppMetadata": "app_metadata: map[b:2], map[]", "Notes": "notes: <nil>, <nil>",
	}
	before := auth.User{ID: "1", Email: "a@example.com", Phone: "+491", FullName: "Ada", UserMetadata: map[string]any{"a": 1}, AppMetadata: map[string]any{"b": 2}, EmailVerifiedAt: time.Unix(1, 0), PhoneVerifiedAt: time.Unix(1, 0)}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.UserPatch]()) {
		var p store.UserPatch
		reflect.ValueOf(&p).Elem().FieldByIndex(f.Index).Set(filled(f.Type))
		tn := &attempt{target: before, record: &store.Record{}}
		tn.recordPatch(p)
		if got := noted(tn.record.Changes); got != want[f.Name] {
			t.Errorf("%s: %q, want %q", f.Name, got, want[f.Name])
		}
	}
	same := &attempt{target: before, record: &store.Record{}}
	same.recordPatch(store.UserPatch{Email: &before.Email, Phone: &before.Phone, FullName: &before.FullName, EmailVerifiedAt: &before.EmailVerifiedAt, PhoneVerifiedAt: &before.PhoneVerifiedAt, UserMetadata: map[string]any{"a": 1.0}, AppMetadata: map[string]any{"b": 2.0}})
	if got := noted(same.record.Changes); got != "" {
		t.Errorf("what stays is recorded: %s", got)
	}
	whole := map[string]string{
		"": "", "Email": "email: <nil>, x", "Phone": "phone: <nil>, x", "FullName": "full_name: <nil>, x", "EmailVerifiedAt": "email_verified: <nil>, true", "PhoneVerifiedAt": "phone_verified: <nil>, true", "Roles": "roles: <nil>, []",
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[auth.User]()) {
		var nu store.NewUser
		reflect.ValueOf(&nu.User).Elem().FieldByIndex(f.Index).Set(filled(f.Type))
		tn := &attempt{record: &store.Record{}}
		tn.recordCreated(nu)
		if got := noted(tn.record.Changes); got != whole[f.Name] {
			t.Errorf("%s of a new account: %q, want %q", f.Name, got, whole[f.Name])
		}
	}
	tn := &attempt{record: &store.Record{}}
	tn.recordCreated(store.NewUser{PasswordHash: "x", User: auth.User{AppMetadata: map[string]any{"b": 2}}})
	if got := noted(tn.record.Changes); got != "app_metadata: <nil>, map[b:2]; password: <nil>, true" {
		t.Error(got)
	}
}

// noted returns changes as one line.
func noted(changes map[string]store.FieldChange) string {
	show := func(v any) any {
		if s, ok := v.(*string); ok && s != nil {
			return *s
		} else if ok {
			return nil
		}
		return v
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		lines = append(lines, fmt.Sprintf("%s: %v, %v", name, show(changes[name].Before), show(changes[name].After)))
	}
	return strings.Join(lines, "; ")
}
