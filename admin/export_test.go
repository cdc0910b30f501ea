package admin

import "context"

// The table of operations, for tests that have to cover all of them.

// Row is what an operation asks for.
type Row struct {
	Pattern    string
	Permission string
	Targets    bool // it compares its actor with whom it is about
	StepUp     bool
	Self       bool
	Reads      bool
	Secret     bool
	Strength   string // of whom it is about: what its actor has to have, too
}

// Table is every operation.
func Table() []Row {
	var rows []Row
	for _, e := range endpoints() {
		o := e.op
		rows = append(rows, Row{o.pattern, o.permission, o.against != anybody && !o.skips, o.stepUp, o.self, o.reads(), o.secret, [...]string{"", "managing", "stronger", "at least as strong"}[o.against]})
	}
	return rows
}

// Work works jobs off, as the process does behind the requests' backs.
func Work(ctx context.Context, m *Admin) {
	w := &worker{Admin: m}
	defer w.close()
	for w.workOne(ctx) {
	}
}

// ImportSize sets how many bytes an import may have.
func (m *Admin) ImportSize(n int64) { m.importSize = n }

// ImportRows sets how many rows an import may have.
func (m *Admin) ImportRows(n int) { m.importRows = n }

// ExportPage sets how many accounts an export reads at a time.
func (m *Admin) ExportPage(n int) { m.exportPage = n }

// EndsAtOnce sets how many sessions a change ends where all are to.
func (m *Admin) EndsAtOnce(n int) { m.endsAtOnce = n }
