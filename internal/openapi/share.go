package openapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// shareable is a parameter or response that becomes a component if several operations
// use it.
type shareable struct {
	name  string // name of the component, unless another has it
	value object
}

// MarshalJSON writes the value, because a shareable represents it in the document.
func (s shareable) MarshalJSON() ([]byte, error) { return json.Marshal(s.value) }

// uses are the operations with the same value.
type uses struct {
	shareable
	path string // of the first operation
	set  []func(ref object)
}

// repeats collects the uses of each value.
type repeats struct {
	byText map[string]*uses
	list   []*uses // in document order
}

func newRepeats() *repeats { return &repeats{byText: map[string]*uses{}} }

func (r *repeats) add(s shareable, path string, set func(ref object)) {
	text, _ := json.Marshal(s) // Marshal sorts the names
	u := r.byText[string(text)]
	if u == nil {
		u = &uses{shareable: s, path: path}
		r.byText[string(text)] = u
		r.list = append(r.list, u)
	}
	u.set = append(u.set, set)
}

// byUses returns the values sorted by use, the most frequent first.
func (r *repeats) byUses() []*uses {
	slices.SortStableFunc(r.list, func(a, b *uses) int { return cmp.Compare(len(b.set), len(a.set)) })
	return r.list
}

// move turns values that occur more than once into components. The most frequent one keeps
// its name. Others with that name also get their path's name or a number.
func (r *repeats) move(to object, section string) {
	for _, u := range r.byUses() {
		if len(u.set) < 2 {
			continue
		}
		base := u.name
		if to[base] != nil && section == "parameters" {
			base = camel(resource(u.path)) + base
		}
		name := base
		for n := 2; to[name] != nil; n++ {
			name = base + strconv.Itoa(n)
		}
		to[name] = u.value
		for _, set := range u.set {
			set(object{"$ref": "#/components/" + section + "/" + name})
		}
	}
}

// shareRepeats replaces repeated parameters and responses by references to components. The
// most frequent security becomes the document's.
func (b *builder) shareRepeats() {
	parameters, responses, security := newRepeats(), newRepeats(), newRepeats()
	for _, path := range sorted(b.doc.Paths) {
		for _, method := range sorted(b.doc.Paths[path]) {
			op, _ := b.doc.Paths[path][method].(object)
			if list, _ := op["security"].([]object); len(list) > 0 { // open operations declare an empty security
				security.add(shareable{value: object{"security": op["security"]}}, path, func(object) { delete(op, "security") })
			}
			list, _ := op["parameters"].([]any)
			for i, p := range list {
				if s, ok := p.(shareable); ok {
					parameters.add(s, path, func(ref object) { list[i] = ref })
				}
			}
			all, _ := op["responses"].(object)
			for _, status := range sorted(all) {
				if s, ok := all[status].(shareable); ok {
					responses.add(s, path, func(ref object) { all[status] = ref })
				}
			}
		}
	}
	if most := security.byUses(); len(most) > 0 && len(most[0].set) > 1 {
		b.doc.Security = most[0].value["security"]
		for _, set := range most[0].set {
			set(nil)
		}
	}
	parameters.move(b.doc.Components.Parameters, "parameters")
	responses.move(b.doc.Components.Responses, "responses")
}

// failureName joins up to three error codes, such as "NotFoundOrUserNotFound". For more
// codes it returns the status, such as "Forbidden".
func failureName(status int, codes []string) string {
	if len(codes) > 3 {
		return statusName(status)
	}
	names := make([]string, len(codes))
	for i, code := range codes {
		names[i] = camel(code)
	}
	return strings.Join(names, "Or")
}

func statusName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// resource returns the last segment of a path that is not a parameter.
func resource(path string) (name string) {
	for segment := range strings.SplitSeq(path, "/") {
		if !strings.HasPrefix(segment, "{") {
			name = segment
		}
	}
	return name
}

// camel turns user_not_found into UserNotFound, and If-Match into IfMatch.
func camel(name string) string {
	var out strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-.", r) }) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}
