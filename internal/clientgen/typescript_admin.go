package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tsAdmin writes the admin client of the npm package.
type tsAdmin struct {
	*document
	used   map[string]bool // components that results refer to
	inputs []string        // types of arguments
	names  []string        // names of the inputs
}

// results returns a writer that names the components of results. Their types are in
// wire.ts.
func (a *tsAdmin) results() *tsWriter {
	return &tsWriter{ref: func(name string) string { a.used[name] = true; return name }}
}

// inline returns a writer that expands components in place, and renames members with
// field.
func (a *tsAdmin) inline(field func(string) string) *tsWriter {
	w := &tsWriter{field: field}
	w.ref = func(name string) string { return w.typ(a.Components.Schemas[name], "  ") }
	return w
}

// typeScript adds the files of the admin client.
func (d *document) typeScript(calls []*call, files map[string][]byte) {
	a := &tsAdmin{document: d, used: map[string]bool{}}
	var members, table strings.Builder
	for i, c := range calls {
		indent := "  "
		if c.group != "" {
			indent = "    "
			if i == 0 || calls[i-1].group != c.group {
				fmt.Fprintf(&members, "  readonly %s: {\n", c.group)
				fmt.Fprintf(&table, "  %s: {\n", c.group)
			}
		}
		members.WriteString(a.method(c, indent))
		fmt.Fprintf(&table, "%s%s: %q,\n", indent, c.ts, row(c))
		if c.group != "" && (i == len(calls)-1 || calls[i+1].group != c.group) {
			members.WriteString("  };\n")
			table.WriteString("  },\n")
		}
	}
	components := a.components(calls)
	var imported []string
	for _, name := range sorted(a.used) {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(members.String()) {
			imported = append(imported, name)
		}
	}
	open, _ := json.Marshal(d.open(calls))
	files["clients/js/src/admin/wire.ts"] = []byte(adminHead + components)
	files["clients/js/src/admin/inputs.ts"] = []byte(adminHead + strings.Join(a.inputs, "\n"))
	files["clients/js/src/admin/operations.ts"] = []byte(adminHead +
		"import type { CallOptions, Pages, Result, Rows } from \"./call.js\";\n" +
		"import type { " + strings.Join(a.names, ", ") + " } from \"./inputs.js\";\n" +
		"import type { " + strings.Join(imported, ", ") + " } from \"./wire.js\";\n\n" +
		"/** Every operation of the admin API that a secret key may call. */\nexport interface AdminOperations {\n" + members.String() + "}\n" +
		"\n/** The call of each operation: verb, path, place of its input; then \"stream\", or the member with a page's items. */\nexport const operations = {\n" + table.String() + "} as const;\n" +
		"\n/** Members that contain the application's own data; names in it are not converted. */\nexport const open: readonly string[] = " + string(open) + ";\n")
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// method declares a method of the client.
func (a *tsAdmin) method(c *call, indent string) string {
	label := tsCapital(c.group) + tsCapital(c.ts)
	var parts []string
	for _, m := range pathParameter.FindAllStringSubmatch(c.path, -1) {
		parts = append(parts, m[1]+": string")
	}
	if c.lines != nil {
		a.addInput(label+"Row", "/** One line of an import. */\n", a.inline(nil).object(c.lines, ""))
		parts = append(parts, "rows: Rows<"+label+"Row>")
	}
	if s, required := a.arguments(c); len(s.Properties) > 0 {
		a.addInput(label+"Input", tsComment("Input of "+c.title()+", see {@link AdminOperations}.", ""), a.inline(tsCamel).object(s, ""))
		optional := "?"
		if required {
			optional = ""
		}
		parts = append(parts, "input"+optional+": "+label+"Input")
	}
	parts = append(parts, "options?: CallOptions")
	return fmt.Sprintf("%s%s%s(%s): %s;\n", tsComment(c.comment(), indent), indent, c.ts, strings.Join(parts, ", "), a.result(c, indent))
}

func (a *tsAdmin) addInput(name, comment, object string) {
	a.names = append(a.names, name)
	a.inputs = append(a.inputs, comment+"export interface "+name+" "+object+"\n")
}

// arguments returns the members of the body, or the parameters of the query.
func (a *tsAdmin) arguments(c *call) (s *schema, required bool) {
	if c.json != nil {
		return c.json, c.RequestBody.Required
	}
	s = &schema{keywords: keywords{Properties: map[string]*schema{}}}
	for _, p := range c.query {
		member := *p.Schema
		member.Description = p.Description
		s.Properties[p.Name] = &member
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	if c.byMetadata() {
		s.Properties["metadata"] = &schema{keywords: keywords{
			Type: list{"object"}, Description: "By members of app_metadata, up to ten.",
			AdditionalProperties: &schema{keywords: keywords{Type: list{"string", "number", "boolean", "null"}}},
		}}
	}
	return s, len(s.Required) > 0
}

func (a *tsAdmin) result(c *call, indent string) string {
	if c.streams {
		return "Promise<Result<ReadableStream<Uint8Array>>>"
	}
	w := a.results()
	var types []string
	for _, s := range c.results {
		t := "null"
		if s != nil {
			t = w.typ(s, indent)
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if c.items != "" {
		return "Pages<" + strings.Join(types, " | ") + ", " + w.typ(c.page.Properties[c.items].Items, indent) + ">"
	}
	return "Promise<Result<" + strings.Join(types, " | ") + ">>"
}

// comment returns the summary, the description and the operation.
func (c *call) comment() string {
	text := strings.TrimSuffix(c.Summary, ".") + "."
	if c.Description != "" {
		text += "\n\n" + c.Description
	}
	return text + "\n\n`" + c.title() + "`"
}

func (c *call) title() string { return c.verb + " " + c.path }

// row returns the data of a call: verb, path, the place of its input, and the kind of its
// response.
func row(c *call) string {
	parts := []string{c.title(), "none"}
	switch {
	case c.lines != nil:
		parts[1] = "rows"
	case c.json != nil:
		parts[1] = "body"
	case len(c.query) > 0:
		parts[1] = "query"
	}
	switch {
	case c.streams:
		parts = append(parts, "stream")
	case c.items != "":
		parts = append(parts, c.items)
	}
	return strings.Join(parts, " ")
}

// components declares the error codes, and all components that results refer to, directly
// or through others.
func (a *tsAdmin) components(calls []*call) string {
	var operations []*operation
	for _, c := range calls {
		operations = append(operations, c.operation)
	}
	parts := []string{"/** The error codes of the admin API. */\nexport type AdminErrorCode =\n  | " + strings.Join(a.errorCodes(operations), "\n  | ") + ";\n"}
	w := a.results()
	written := map[string]string{}
	for len(written) < len(a.used) {
		for _, name := range sorted(a.used) {
			s := a.Components.Schemas[name]
			text := w.typ(s, "")
			written[name] = tsComment(s.Description, "") + "export type " + name + " = " + text + ";\n"
			if strings.HasPrefix(text, "{") && !slices.Contains(s.Type, "null") {
				written[name] = tsComment(s.Description, "") + "export interface " + name + " " + text + "\n"
			}
		}
	}
	for _, name := range sorted(written) {
		parts = append(parts, written[name])
	}
	return strings.Join(parts, "\n")
}

// open returns the body members with keys that the application chooses. The client keeps
// these keys. The server chooses the names of filters.
func (d *document) open(calls []*call) []string {
	found := map[string]bool{}
	var walk func(s *schema)
	walk = func(s *schema) {
		if s = d.deref(s); s == nil {
			return
		}
		for name, m := range s.Properties {
			m = d.deref(m)
			switch {
			case !slices.Contains(m.Type, "object"):
				walk(m.Items)
			case len(m.Properties) > 0:
				walk(m)
			case name != "filter":
				found[name] = true
			}
		}
	}
	for _, c := range calls {
		walk(c.json)
	}
	return sorted(found)
}
