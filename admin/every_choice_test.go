package admin_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// Each of the values that something may have is taken, and another is not.
func TestEachChoiceIsTaken(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.permit(role)
	bulk := func(p admin.BulkParams) error {
		p.UserIDs, p.DryRun = []string{uuid.NewString()}, true
		_, err := o.adm.Bulk(t.Context(), admin.System("test"), p)
		return err
	}
	for _, kind := range []admin.LinkType{admin.LinkVerify, admin.LinkReset, admin.LinkMagicLink, admin.LinkCode, admin.LinkInvite} {
		if err := bulk(admin.BulkParams{Action: admin.BulkSend, BulkDetails: admin.BulkDetails{Type: kind}}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	wantCode(t, bulk(admin.BulkParams{Action: admin.BulkSend, BulkDetails: admin.BulkDetails{Type: "none"}}), auth.CodeValidationFailed)
	for _, action := range []admin.BulkAction{admin.BulkBan, admin.BulkUnban, admin.BulkDelete, admin.BulkAnonymize, admin.BulkRevokeSessions, admin.BulkAddRole, admin.BulkRemoveRole} {
		if err := bulk(admin.BulkParams{Action: action, BulkDetails: admin.BulkDetails{Reason: "x", Role: role}}); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
	wantCode(t, bulk(admin.BulkParams{Action: "none", BulkDetails: admin.BulkDetails{Reason: "x"}}), auth.CodeValidationFailed)
	for name := range admin.Periods() {
		if _, err := o.adm.Overview(t.Context(), admin.System("test"), admin.OverviewParams{Period: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := o.adm.Overview(t.Context(), admin.System("test"), admin.OverviewParams{Period: name + "1"})
		wantCode(t, err, auth.CodeValidationFailed)
	}
	for _, metric := range store.Metrics() {
		if _, err := o.adm.Stats(t.Context(), admin.System("test"), admin.StatsParams{Metrics: []store.Metric{metric}}); err != nil {
			t.Errorf("%s: %v", metric, err)
		}
	}
}
