package admin

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// Whatever narrows an export is in the audit log, so that it tells what was taken away.
func TestEachFilterOfAnAuditExportIsRecorded(t *testing.T) {
	paging := map[string]bool{"Before": true, "Limit": true} // where it goes on, not of what
	seen := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[auth.EventQuery]()) {
		if paging[f.Name] {
			continue
		}
		var q auth.EventQuery
		switch v := reflect.ValueOf(&q).Elem().FieldByIndex(f.Index); v.Interface().(type) {
		case netip.Addr:
			v.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.1")))
		case time.Time:
			v.Set(reflect.ValueOf(time.Unix(1767323045, 0)))
		default:
			v.SetString("x")
		}
		all := filtersOf(q)
		if len(all) != 1 {
			t.Errorf("%s: recorded as %v", f.Name, all)
		}
		for name := range all {
			if other := seen[name]; other != "" {
				t.Errorf("%s and %s are both recorded as %s", f.Name, other, name)
			}
			seen[name] = f.Name
		}
	}
	if all := filtersOf(auth.EventQuery{}); len(all) != 0 {
		t.Errorf("no filter is recorded as %v", all)
	}
}
