package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Planner is a tracer for pgx. While Explain runs, it explains each statement on a
// separate connection right before it is sent, so that the plan sees the same data.
type Planner struct {
	// Lists also explains the statements of batches, and plans all statements for their
	// parameters, as stores do for lists.
	Lists bool

	mu    sync.Mutex
	on    bool
	plans []Plan
	errs  []error
}

// Plan is the server's plan of a statement.
type Plan struct {
	SQL   string
	root  node
	whole []string // tables that were read completely, also by functions and triggers
}

type node struct {
	Type      string  `json:"Node Type"`
	Operation string  `json:"Operation"`
	Relation  string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Condition string  `json:"Index Cond"`
	Estimated float64 `json:"Plan Rows"`
	Actual    float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Removed   float64 `json:"Rows Removed by Filter"`
	Plans     []node  `json:"Plans"`
}

// Explain returns the plans of the statements that f sends. f must not hold a lock that
// its next statement needs, because explaining would wait for it.
func (p *Planner) Explain(f func() error) ([]Plan, error) {
	p.mu.Lock()
	p.on, p.plans, p.errs = true, nil, nil
	p.mu.Unlock()
	err := f()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = false
	return p.plans, errors.Join(append(p.errs, err)...)
}

// TraceQueryStart implements pgx.QueryTracer.
func (p *Planner) TraceQueryStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	p.explain(ctx, conn, d.SQL, d.Args)
	return ctx
}

// TraceBatchStart implements pgx.BatchTracer.
func (p *Planner) TraceBatchStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	if p.Lists {
		for _, q := range d.Batch.QueuedQueries {
			p.explain(ctx, conn, q.SQL, q.Arguments)
		}
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (p *Planner) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (p *Planner) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (p *Planner) explain(ctx context.Context, conn *pgx.Conn, sql string, args []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	verb, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	if !p.on || !slices.Contains([]string{"select", "insert", "update", "delete", "with"}, verb) {
		return
	}
	mode := "force_generic_plan"
	if p.Lists {
		mode = "force_custom_plan"
	}
	plan, err := explain(ctx, conn.Config(), mode, sql, args)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("explain: %w\n%s", err, sql))
	} else {
		p.plans = append(p.plans, plan)
	}
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *Planner) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// explain runs a statement and rolls it back. It uses the generic plan, as a prepared
// statement does eventually.
func explain(ctx context.Context, cfg *pgx.ConnConfig, mode, sql string, args []any) (Plan, error) {
	cfg.Tracer = nil
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return Plan{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	prepared, err := conn.Prepare(ctx, "explained", sql)
	if err != nil {
		return Plan{}, err
	}
	call := "execute explained"
	if len(args) > 0 {
		values := make([]string, len(args))
		for i, arg := range args {
			text, err := conn.TypeMap().Encode(prepared.ParamOIDs[i], pgx.TextFormatCode, arg, []byte{})
			if err != nil {
				return Plan{}, err
			}
			if values[i] = "null"; text != nil {
				values[i] = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
			}
		}
		call += "(" + strings.Join(values, ", ") + ")"
	}
	results, err := conn.PgConn().Exec(ctx, `begin; set local plan_cache_mode = `+mode+`;
		explain (analyze, timing off, format json) `+call+`;
		select schemaname || '.' || relname from pg_stat_xact_user_tables where seq_scan > 0;
		rollback`).ReadAll()
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{SQL: sql}
	for _, row := range results[3].Rows {
		plan.whole = append(plan.whole, string(row[0]))
	}
	var top []struct{ Plan node }
	if err := json.Unmarshal(results[2].Rows[0][0], &top); err != nil {
		return Plan{}, err
	}
	plan.root = top[0].Plan
	return plan, nil
}

// String returns the plan in one line, with the estimated and actual rows of each index
// scan.
func (p Plan) String() string { return p.root.String() }

func (n node) String() string {
	name := n.Type
	if n.Type == "ModifyTable" {
		name = n.Operation
	}
	switch {
	case n.Index != "":
		name += fmt.Sprintf(" %s [%.0f expected, %.0f found]", n.Index, n.Estimated, n.Actual*n.Loops)
	case n.Relation != "":
		name += " " + n.Relation
	}
	if len(n.Plans) == 0 {
		return name
	}
	var parts []string
	for _, sub := range n.Plans {
		parts = append(parts, sub.String())
	}
	return name + " (" + strings.Join(parts, ", ") + ")"
}

// unknownArray is the number of elements that Postgres assumes for an unknown array.
const unknownArray = 10

// CheckList returns an error if the plan of a list reads a table completely, uses none of
// these indexes, or finds more than this many rows by an index.
func (p Plan) CheckList(rows int, indexes ...string) error {
	var errs []error
	if len(p.whole) > 0 {
		errs = append(errs, fmt.Errorf("%s: read from start to end", strings.Join(p.whole, ", ")))
	}
	used := false
	var check func(n node)
	check = func(n node) {
		used = used || slices.Contains(indexes, n.Index)
		if n.Index != "" && n.Actual*n.Loops > float64(rows) {
			errs = append(errs, fmt.Errorf("%s by %s: %.0f found", n.Type, n.Index, n.Actual*n.Loops))
		}
		for _, sub := range n.Plans {
			check(sub)
		}
	}
	check(p.root)
	if !used {
		errs = append(errs, fmt.Errorf("none of %v is used", indexes))
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w\nin: %v\nof: %s", errors.Join(errs...), p, p.SQL)
	}
	return nil
}

// Reads returns an error if the plan of a statement reads a table completely, reads more
// than this many rows of a table, including those it then filters out, or uses an index
// that is not in the list, unless the list is empty.
func (p Plan) Reads(rows int, indexes ...string) error {
	var errs []error
	if len(p.whole) > 0 {
		errs = append(errs, fmt.Errorf("%s: read from start to end", strings.Join(p.whole, ", ")))
	}
	var check func(n node)
	check = func(n node) {
		switch {
		case n.Type == "Seq Scan":
			errs = append(errs, fmt.Errorf("sequential scan of %s", n.Relation))
		case n.Index == "":
		case len(indexes) > 0 && !slices.Contains(indexes, n.Index):
			errs = append(errs, fmt.Errorf("%s by %s", n.Type, n.Index))
		case (n.Actual+n.Removed)*n.Loops > float64(rows):
			errs = append(errs, fmt.Errorf("%s by %s: %.0f rows read", n.Type, n.Index, (n.Actual+n.Removed)*n.Loops))
		}
		for _, sub := range n.Plans {
			check(sub)
		}
	}
	check(p.root)
	if len(errs) > 0 {
		return fmt.Errorf("%w\nin: %v\nof: %s", errors.Join(errs...), p, p.SQL)
	}
	return nil
}

// Check returns an error if the plan of a statement that finds rows by keys reads a table
// completely, uses an index that is not in the list, finds more than this many rows of a
// table, or expects more than one row per key.
func (p Plan) Check(rows int, indexes ...string) error {
	var errs []error
	if len(p.whole) > 0 {
		errs = append(errs, fmt.Errorf("%s: read from start to end", strings.Join(p.whole, ", ")))
	}
	var check func(n node)
	check = func(n node) {
		most := 1.0 // expected rows per key
		if strings.Contains(n.Condition, "ANY (") {
			most = unknownArray
		}
		switch {
		case n.Type == "Seq Scan":
			errs = append(errs, fmt.Errorf("sequential scan of %s", n.Relation))
		case n.Index == "":
		case !slices.Contains(indexes, n.Index):
			errs = append(errs, fmt.Errorf("%s by %s", n.Type, n.Index))
		case n.Estimated > most || n.Actual*n.Loops > float64(rows):
			errs = append(errs, fmt.Errorf("%s by %s: %.0f rows expected, %.0f found", n.Type, n.Index, n.Estimated, n.Actual*n.Loops))
		}
		for _, sub := range n.Plans {
			check(sub)
		}
	}
	check(p.root)
	if len(errs) > 0 {
		return fmt.Errorf("%w\nin: %v\nof: %s", errors.Join(errs...), p, p.SQL)
	}
	return nil
}
