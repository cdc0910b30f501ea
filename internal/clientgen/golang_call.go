package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// call writes a method and the types that only it uses.
func (g *goWriter) call(c *call) {
	if c.lines != nil {
		g.declare(c.result, "is one account of Admin.ImportUsers.", "", g.body(c.lines, c.result))
		return
	}
	texts, path := c.goPath()
	args, body, input := "", "nil", c.input
	switch {
	case c.json != nil && len(c.json.Properties) == 1 && c.json.Properties["reason"] != nil:
		texts, body = append(texts, "reason"), "reasonBody(reason)"
	case c.json != nil:
		if input == "" {
			input = c.method + map[bool]string{true: "Changes", false: "Params"}[c.verb == "PATCH"]
		}
		fields := g.body(c.json, input)
		if c.verb == "PATCH" {
			fields = g.changes(c.json, input)
		}
		g.declare(input, "are the parameters of Admin."+c.method+".", "", fields)
		args, body = "p "+input+", ", "p"
	case len(c.query) > 0:
		if input == "" {
			input = c.method + "Query"
		}
		g.declare(input, "selects the results of Admin."+c.method+". Empty fields do not narrow it.", "", g.parameters(c))
		args = "q " + input + ", "
	}
	if len(texts) > 0 {
		args = strings.Join(texts, ", ") + " string, " + args
	}
	prepared := fmt.Sprintf("a.prepared(%q, %s, %s, opts)", c.verb, path, body)
	signature := func(results string) string {
		return fmt.Sprintf("func (a *Admin) %s(ctx context.Context, %sopts ...CallOption) %s {\n", c.method, args, results)
	}
	switch {
	case c.streams:
		g.stream(c, signature, prepared)
	case c.page != nil:
		g.pages(c, input, args, append(texts, "q"), signature, prepared)
	default:
		g.once(c, signature, prepared)
	}
}

// goPath returns the path's arguments and the expression that builds the path.
func (c *call) goPath() (args []string, expression string) {
	path := strings.TrimPrefix(c.path, "/admin")
	expression = pathParameter.ReplaceAllStringFunc(fmt.Sprintf("%q", path), func(p string) string {
		name := strings.Trim(p, "{}")
		switch {
		case name == "id" && strings.HasPrefix(path, "/users/"):
			name = "userID"
		case name == "factor" || name == "identity":
			name += "ID"
		}
		args = append(args, name)
		return `"+segment(` + name + `)+"`
	})
	return args, strings.TrimSuffix(expression, `+""`)
}

// queryStatement adds the query to the call k.
const queryStatement = "k.query = queryOf(q)\n"

// once writes a method that reads the complete response.
func (g *goWriter) once(c *call, signature func(string) string, prepared string) {
	typ, rows := g.results(c)
	g.comment(c, "")
	statements, k := "", prepared
	if len(c.query) > 0 {
		statements, k = "k := "+prepared+"\n"+queryStatement, "k"
	}
	switch {
	case typ == "":
		g.printf("%s%sreturn a.wire.do(ctx, %s, nil)\n}\n", signature("error"), statements, k)
	case typ == "json.RawMessage":
		g.printf("%s%sv, err := run[json.RawMessage](ctx, a, %s)\nif err != nil {\nreturn nil, err\n}\nreturn *v, nil\n}\n", signature("(json.RawMessage, error)"), statements, k)
	case rows != "":
		g.printf("%s%sv, err := run[struct {\nRows []%s `json:%q`\n}](ctx, a, %s)\nif err != nil {\nreturn nil, err\n}\nreturn v.Rows, nil\n}\n",
			signature("([]"+typ+", error)"), statements, typ, rows, k)
	default:
		g.printf("%s%sreturn run[%s](ctx, a, %s)\n}\n", signature("(*"+typ+", error)"), statements, typ, k)
	}
}

// results returns the type of the result. If the response is an object with only a list,
// rows is the list's name.
func (g *goWriter) results(c *call) (typ, rows string) {
	if c.result == "json.RawMessage" {
		return c.result, ""
	}
	whole := &schema{keywords: keywords{Properties: map[string]*schema{}}}
	for _, s := range c.results {
		if s == nil {
			return "", ""
		}
		maps.Copy(whole.Properties, g.deref(s).Properties)
	}
	first := c.results[0]
	if members := sorted(whole.Properties); len(members) == 1 && slices.Contains(whole.Properties[members[0]].Type, "array") {
		return g.row(whole.Properties[members[0]].Items, c), members[0]
	}
	if first.Ref != "" && len(g.deref(first).Properties) == len(whole.Properties) {
		return g.component(last(first.Ref), "", "", false), ""
	}
	g.result(c.result, "is the result of Admin."+c.method+".", whole, "")
	return c.result, ""
}

// row returns the type of one entry of a list.
func (g *goWriter) row(s *schema, c *call) string {
	if s.Ref != "" {
		return g.component(last(s.Ref), "", "", false)
	}
	g.result(c.result, "is one result of Admin."+c.method+".", s, "")
	return c.result
}

// pages writes a method that follows cursors, and one that reads a page.
func (g *goWriter) pages(c *call, input, args string, names []string, signature func(string) string, prepared string) {
	row := g.row(c.page.Properties[c.items].Items, c)
	page := strings.TrimSuffix(input, "Query") + "Page"
	var fields []field
	for _, member := range sorted(c.page.Properties) {
		m := c.page.Properties[member]
		typ := "[]" + row
		if member != c.items {
			typ = g.typ(m, page, member, true)
		}
		fields = append(fields, field{goName(member), typ, fmt.Sprintf("json:%q", member), g.about(m)})
	}
	g.declare(page, "is one page of Admin."+c.method+".", "", fields)
	g.comment(c, "It follows cursors to the end; "+page+" reads one page.")
	g.printf("%sreturn all(ctx, q, func(q *%s) *string { return &q.Cursor }, func(ctx context.Context, q %s) ([]%s, *string, error) {\n", signature("iter.Seq2["+row+", error]"), input, input, row)
	g.printf("p, err := a.%s(ctx, %s, opts...)\nif err != nil {\nreturn nil, nil, err\n}\nreturn p.%s, p.NextCursor, nil\n})\n}\n", page, strings.Join(names, ", "), goName(c.items))
	g.printf("\n// %s reads one page of %s.\n", page, c.method)
	g.printf("func (a *Admin) %s(ctx context.Context, %sopts ...CallOption) (*%s, error) {\nk := %s\n%sreturn run[%s](ctx, a, k)\n}\n", page, args, page, prepared, queryStatement, page)
}

// stream writes a method that returns its response as a stream.
func (g *goWriter) stream(c *call, signature func(string) string, prepared string) {
	if len(c.query) == 0 {
		g.comment(c, "")
		g.printf("%sreturn rowsOf[%s](ctx, a, %s)\n}\n", signature("iter.Seq2["+c.result+", error]"), c.result, prepared)
		return
	}
	g.comment(c, "The caller closes the stream; Rows reads it.")
	g.printf("%sk := %s\n%sreturn a.stream(ctx, k, q.Format.mediaType())\n}\n", signature("(io.ReadCloser, error)"), prepared, queryStatement)
}

var permission = regexp.MustCompile(`\s*\b(auth\.[a-z_.]+)$`)

// comment writes the comment of a method: the operation, its summary and description. The
// description ends with the permission that the operation needs.
func (g *goWriter) comment(c *call, more string) {
	text := fmt.Sprintf("%s is %s %s: %s%s.", c.method, c.verb, strings.TrimPrefix(c.path, "/admin"), strings.ToLower(c.Summary[:1]), strings.TrimRight(c.Summary[1:], ".?"))
	if c.Description != "" {
		text += " " + permission.ReplaceAllString(c.Description, " Permission: $1.")
	}
	g.printf("\n%s", goComment(text+" "+more))
}

// body returns the fields of a request body. Optional fields are omitted if they are
// empty.
func (g *goWriter) body(s *schema, parent string) []field {
	var fields []field
	for _, member := range sorted(s.Properties) {
		m := s.Properties[member]
		f := field{name: goName(member), tag: fmt.Sprintf("json:%q", member), comment: g.about(m)}
		if slices.Contains(s.Required, member) {
			f.typ = g.typ(m, parent, member, true)
		} else {
			f.typ = g.sent(m, parent, member)
			option := ",omitempty"
			if f.typ == "time.Time" {
				option = ",omitzero"
			}
			f.tag = fmt.Sprintf("json:%q", member+option)
		}
		fields = append(fields, f)
	}
	return fields
}

// sent returns the type of an optional member. Objects in a list have optional members,
// too.
func (g *goWriter) sent(m *schema, parent, member string) string {
	if m.Items != nil && m.Items.Properties != nil {
		name := singular(parent + goName(member))
		g.declare(name, "is one of "+parent+"."+goName(member)+".", "", g.body(m.Items, name))
		return "[]" + name
	}
	return g.typ(m, parent, member, false)
}

// changes returns the fields of a PATCH.
func (g *goWriter) changes(s *schema, parent string) []field {
	var fields []field
	for _, member := range sorted(s.Properties) {
		m := s.Properties[member]
		fields = append(fields, field{goName(member), "Change[" + g.typ(m, parent, member, false) + "]", fmt.Sprintf("json:%q", member+",omitzero"), g.about(m)})
	}
	return fields
}

// parameters returns the fields of a query.
func (g *goWriter) parameters(c *call) []field {
	var fields []field
	for _, p := range c.query {
		f := field{goName(p.Name), g.typ(p.Schema, "", p.Name, false), fmt.Sprintf("query:%q", p.Name), ""}
		about := *p.Schema
		about.Description = p.Description
		f.comment = g.about(&about)
		switch {
		case separated[p.Name]:
			f.typ = "[]string"
		case p.Name == "format":
			f.typ = "Format"
		case f.typ == "bool":
			f.typ = "*bool"
		}
		fields = append(fields, f)
	}
	if c.byMetadata() {
		fields = append(fields, field{"Metadata", "map[string]string", `query:"metadata."`, "By members of app_metadata, up to ten."})
	}
	return fields
}
