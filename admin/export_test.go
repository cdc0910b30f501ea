package admin

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// The table of operations, for tests that have to cover all of them.

// Row is the declaration of an operation.
type Row struct {
	Pattern    string
	Permission string
	Targets    bool // it compares its actor with its target
	StepUp     bool
	Spends     bool
	ByName     bool
	Self       bool
	Reads      bool
	Secret     bool
	Strength   string // how strong the actor has to be, if that is special
	Body       bool   // it reads a body
	Strict     bool   // it refuses unknown query parameters
	Revised    bool   // it reads If-Match
	Roles      bool   // it changes something, and its path or body names roles
}

// Table is every operation.
func Table() []Row {
	var rows []Row
	for _, e := range endpoints() {
		o := e.op
		tagged := func(tag string) bool {
			return slices.ContainsFunc(reflect.VisibleFields(e.params), func(f reflect.StructField) bool { return f.Tag.Get(tag) != "" })
		}
		rows = append(rows, Row{o.pattern, o.permission, o.against != anybody && !o.skips, o.stepUp, o.spends, o.byName || o.permission == PermRolesAssign, o.self, o.reads(), o.secret, [...]string{"", "managing", "stronger", "at least as strong"}[o.against],
			tagged("json"), o.strict || tagged("query"), tagged("header"), !o.reads() && slices.ContainsFunc(reflect.VisibleFields(e.params), func(f reflect.StructField) bool {
				return slices.ContainsFunc([]string{f.Tag.Get("json"), f.Tag.Get("path")}, func(name string) bool { name, _, _ = strings.Cut(name, ","); return name == "role" || name == "roles" })
			})})
	}
	return rows
}

// NotForKeys are the permissions that no key may have.
func NotForKeys() []string { return notForKeys() }

// Work completes jobs, as the process does in the background.
func Work(ctx context.Context, m *Admin) {
	w := &worker{Admin: m}
	defer w.close()
	for w.workOne(ctx) {
	}
}

// ImportSize sets the maximal bytes of an import.
func (m *Admin) ImportSize(n int64) { m.importSize = n }

// ImportRows sets the maximal rows of an import.
func (m *Admin) ImportRows(n int) { m.importRows = n }

// ExportPage sets the number of accounts that an export reads at a time.
func (m *Admin) ExportPage(n int) { m.exportPage = n }

// EndsAtOnce sets the number of sessions that one change revokes when all are to be
// revoked.
func (m *Admin) EndsAtOnce(n int) { m.endsAtOnce = n }

// Serve has the endpoint of a request's method and path, below /admin, answer for an
// actor. It skips the admission of requests, as a page does when it calls the operation.
func Serve(m *Admin, who Actor, w http.ResponseWriter, r *http.Request) (err error) {
	mux := http.NewServeMux()
	for _, e := range endpoints() {
		mux.HandleFunc(e.op.pattern, func(w http.ResponseWriter, r *http.Request) { err = e.handle(m, who, w, r) })
	}
	mux.ServeHTTP(w, r)
	return err
}
