package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unimportant reports whether a change has no effect that a test can detect, such as
// logging, and releasing resources that the garbage collector or a timeout releases.
func unimportant(n ast.Node) bool {
	var call *ast.CallExpr
	switch n := n.(type) {
	case *ast.ExprStmt:
		call, _ = n.X.(*ast.CallExpr)
	case *ast.DeferStmt:
		call = n.Call
	case *ast.AssignStmt:
		if id, ok := n.Lhs[0].(*ast.Ident); ok && id.Name == "_" && len(n.Rhs) == 1 {
			call, _ = n.Rhs[0].(*ast.CallExpr)
		}
	case *ast.ImportSpec, *ast.Field, *ast.FieldList:
		return true
	}
	if call == nil {
		return false
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "cancel"
	case *ast.SelectorExpr:
		return slices.Contains([]string{"Close", "Stop", "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "LogAttrs"}, f.Sel.Name)
	}
	return false
}

// mutate adds the mutants of one node.
func (s *source) mutate(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		s.condition(n.Cond, n.Else == nil)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					s.condition(e, true)
				}
			}
		}
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.ExprStmt, *ast.DeferStmt:
		s.add(n.Pos(), n.End(), "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			s.add(n.Pos(), n.End(), "")
		}
	case *ast.CompositeLit:
		s.elements(n.Elts, n.Lbrace, n.Rbrace, 0)
	case *ast.CallExpr:
		s.arguments(n)
	case *ast.ReturnStmt:
		s.returned(n)
	case *ast.Ident:
		if swap := map[string]string{"true": "false", "false": "true"}[n.Name]; swap != "" {
			s.add(n.Pos(), n.End(), swap)
		}
	case *ast.BasicLit:
		s.literal(n)
	}
}

func (s *source) textOf(n ast.Node) string { return s.text[s.offset(n.Pos()):s.offset(n.End())] }

// condition negates a condition. If it guards code, it also makes it false.
func (s *source) condition(e ast.Expr, guard bool) {
	if b, ok := e.(*ast.BinaryExpr); !ok || (b.Op != token.EQL && b.Op != token.NEQ) { // binary negates those
		s.add(e.Pos(), e.End(), "!("+s.textOf(e)+")")
	}
	if guard {
		s.add(e.Pos(), e.End(), "false && ("+s.textOf(e)+")")
	}
}

// binary swaps operators, and removes one side of an && or ||.
func (s *source) binary(b *ast.BinaryExpr) {
	swap, ok := map[token.Token]string{
		token.LAND: "||", token.LOR: "&&", token.EQL: "!=", token.NEQ: "==",
		token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	}[b.Op]
	if ok {
		s.add(b.OpPos, b.OpPos+token.Pos(len(b.Op.String())), swap)
	}
	without := map[token.Token]string{token.LAND: "(true || ", token.LOR: "(false && "}[b.Op]
	if without != "" {
		s.add(b.X.Pos(), b.X.End(), without+"("+s.textOf(b.X)+"))")
		s.add(b.Y.Pos(), b.Y.End(), without+"("+s.textOf(b.Y)+"))")
	}
}

// elements removes one element of a list: a member, a condition, an event, a draw.
func (s *source) elements(list []ast.Expr, open, shut token.Pos, first int) {
	for i := first; i < len(list); i++ {
		switch {
		case i < len(list)-1:
			s.add(list[i].Pos(), list[i+1].Pos(), "")
		case i > 0:
			s.add(list[i-1].End(), shut, "")
		default:
			s.add(open+1, shut, "")
		}
	}
}

// arguments removes one optional argument.
func (s *source) arguments(c *ast.CallExpr) {
	name := ""
	switch f := c.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if first, ok := s.variadic[name]; ok && !c.Ellipsis.IsValid() {
		s.elements(c.Args, c.Lparen, c.Rparen, first)
	}
}

// returned removes an error.
func (s *source) returned(r *ast.ReturnStmt) {
	var t *ast.FuncType
	if s.fn != nil {
		t = s.fn.Type
	}
	for _, n := range s.stack {
		if lit, ok := n.(*ast.FuncLit); ok {
			t = lit.Type
		}
	}
	if t == nil || len(r.Results) == 0 || t.Results.NumFields() != len(r.Results) {
		return
	}
	id, ok := t.Results.List[len(t.Results.List)-1].Type.(*ast.Ident)
	last := r.Results[len(r.Results)-1]
	if ok && id.Name == "error" && s.textOf(last) != "nil" {
		s.add(last.Pos(), last.End(), "nil")
	}
}

// literal changes a number by one, or mutates SQL.
func (s *source) literal(l *ast.BasicLit) {
	switch l.Kind {
	case token.INT:
		if n, err := strconv.ParseInt(l.Value, 10, 64); err == nil {
			s.add(l.Pos(), l.End(), strconv.FormatInt(n+1, 10))
		}
	case token.STRING:
		if at := s.offset(l.Pos()); strings.HasPrefix(s.file, "pgstore/") && isSQL.MatchString(l.Value) {
			for _, e := range sqlEdits(l.Value) {
				s.addAt(at+e.start, at+e.end, e.text)
			}
		}
	}
}

var (
	isSQL      = regexp.MustCompile(`(?i)\b(select|update|insert|delete|where|and)\b`)
	sqlAnd     = regexp.MustCompile(`\sand\s`)
	sqlCompare = regexp.MustCompile(`\s(<|<=|>|>=|<>)\s`)
	sqlLock    = regexp.MustCompile(`\sfor (update|share|no key update|key share)\b`)
	sqlEnd     = regexp.MustCompile("^(\\s(and|or|returning|order|group|limit|for|on|from|union)\\s|[,\n`\"])")
)

type edit struct {
	start, end int
	text       string
}

// sqlEdits removes conditions and locks, and changes comparisons by one.
func sqlEdits(sql string) (edits []edit) {
	for _, at := range sqlAnd.FindAllStringIndex(sql, -1) {
		if line := sql[1+strings.LastIndexAny(sql[:at[0]], "\n\t(") : at[0]]; strings.Contains(line, " between ") {
			continue
		}
		if end := sqlPredicate(sql, at[1]); end > at[1] {
			edits = append(edits, edit{at[0], end, ""})
		}
	}
	for _, at := range sqlCompare.FindAllStringSubmatchIndex(sql, -1) {
		swap := map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "<>": "="}[sql[at[2]:at[3]]]
		edits = append(edits, edit{at[2], at[3], swap})
	}
	for _, at := range sqlLock.FindAllStringIndex(sql, -1) {
		edits = append(edits, edit{at[0], at[1], ""})
	}
	return edits
}

// sqlPredicate returns the end of the condition at an offset, or 0.
func sqlPredicate(sql string, from int) int {
	depth := 0
	for i := from; i < len(sql); i++ {
		switch {
		case sql[i] == '(':
			depth++
		case sql[i] == ')' && depth == 0:
			return i
		case sql[i] == ')':
			depth--
		case depth == 0 && sqlEnd.MatchString(sql[i:]):
			if sqlAnd.MatchString(sql[i:min(i+5, len(sql))]) && strings.Count(sql[from:i], " between ") > strings.Count(sql[from:i], " and ") {
				continue // the AND of a BETWEEN
			}
			return i
		}
	}
	return 0
}
