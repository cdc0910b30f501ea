package admin

import (
	"net/http"
	"strings"
)

func (m *Admin) handleExportUsers(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := ExportUsersParams{ListUsersParams: v.userFilters(), Format: v.text("format")}
	if f := v.text("fields"); f != "" {
		p.Fields = strings.Split(f, ",")
	}
	if err := v.done(); err != nil {
		return err
	}
	out := newDownload(w, "users", p.Format)
	return m.serveDownload(who, opExportUsers, out, r, func() error { return m.ExportUsers(r.Context(), who, p, out) })
}
