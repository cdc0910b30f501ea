package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

var envelope = Envelope{
	Server:  "/v1",
	Always:  []Error{{"not_found", 404}, {"internal", 500}},
	Body:    []Error{{"bad_json", 400}},
	Limited: []Error{{"rate_limited", 429}},
}

const things = `{
	"securitySchemes": {"key": {"type": "apiKey"}, "bearer": {"type": "http"}},
	"schemas": {
		"Thing": {"properties": {"id": "string", "note": "string?", "part": "Part?", "kind": {"enum": ["a"]}}, "optional": ["kind"]},
		"Part": {"description": "A part.", "properties": {"of": {"type": "array", "items": "Thing"}}},
		"Error": {"properties": {"code": "string"}, "if": {"properties": {"code": {"const": "x"}}}}
	}
}`

const thingsProse = `{
	"info": {"title": "Things"}, "tags": ["Things"],
	"parameters": {"id": "Which."}, "limits": {"PerIP": "requests of an address"},
	"operations": {
		"GET /things/{id}": {"tag": "Things", "summary": "One", "query": {"q": {"type": "string", "description": "Why."}},
			"responses": {"200": {"description": "It.", "json": "Thing", "other": ["text/html"]}, "303": {"description": "On."}}},
		"POST /things": {"tag": "Things", "summary": "Make", "description": "Makes one.",
			"json": {"type": "object", "properties": {"note": "string"}}, "form": {"type": "object"}, "example": {"note": "<n>"},
			"responses": {"204": {"description": "Made."}}}
	}
}`

func thingsPart() Part {
	return Part{Schemas: []byte(things), Prose: []byte(thingsProse), Routes: []Route{
		{Pattern: "GET /things/{id}"},
		{Pattern: "POST /things", Security: [][]string{{"bearer", "key"}, {}}, Limits: []string{"PerIP"}, Errors: []Error{
			{"invalid", 422}, {"weak", 422}, {"bad_json", 400}, {"ended", 400},
		}},
	}}
}

func build(t *testing.T, parts ...Part) map[string]any {
	t.Helper()
	doc, err := Build(envelope, parts...)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at is the part of a document below names, as JSON.
func at(t *testing.T, doc map[string]any, names ...string) string {
	t.Helper()
	var v any = doc
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestBuild(t *testing.T) {
	doc := build(t, thingsPart())
	get, post, head := []string{"paths", "/things/{id}", "get"}, []string{"paths", "/things", "post"}, []string{"paths", "/things/{id}", "head"}
	for name, c := range map[string]struct {
		at   []string
		want string
	}{
		"server":         {[]string{"servers"}, `[{"url":"/v1"}]`},
		"tags":           {[]string{"tags"}, `[{"name":"Things"}]`},
		"info":           {[]string{"info", "title"}, `"Things"`},
		"name":           {append(get, "operationId"), `"getThingsById"`},
		"open":           {append(get, "security"), `[]`},
		"alternatives":   {append(post, "security"), `[{"bearer":[],"key":[]},{}]`},
		"prose":          {append(post, "description"), `"Makes one."`},
		"no prose":       {append(get, "description"), `null`},
		"no body":        {append(get, "requestBody"), `null`},
		"received":       {append(post, "requestBody", "content", "application/json", "schema"), `{"properties":{"note":{"type":"string"}},"type":"object"}`},
		"required body":  {append(post, "requestBody", "required"), `true`},
		"example":        {append(post, "requestBody", "content", "application/json", "example", "note"), `"\u003cn\u003e"`},
		"parameters":     {append(get, "parameters"), `[{"$ref":"#/components/parameters/Id"},{"$ref":"#/components/parameters/Q"}]`}, // HEAD has them, too
		"path":           {[]string{"components", "parameters", "Id"}, `{"description":"Which.","in":"path","name":"id","required":true,"schema":{"type":"string"}}`},
		"query":          {[]string{"components", "parameters", "Q"}, `{"description":"Why.","in":"query","name":"q","schema":{"type":"string"}}`},
		"success":        {append(get, "responses", "200", "content", "application/json", "schema"), `{"$ref":"#/components/schemas/Thing"}`},
		"page":           {append(get, "responses", "200", "content", "text/html", "schema"), `{"type":"string"}`},
		"error page":     {append(get, "responses", "404", "content", "text/html", "schema"), `{"type":"string"}`},
		"codes":          {append(post, "responses", "422", "content", "application/json", "schema", "allOf"), `[{"$ref":"#/components/schemas/Error"},{"properties":{"code":{"enum":["invalid","weak"]}}}]`},
		"codes once":     {append(post, "responses", "400", "content", "application/json", "schema", "allOf"), `[{"$ref":"#/components/schemas/Error"},{"properties":{"code":{"enum":["bad_json","ended"]}}}]`},
		"limit":          {append(post, "responses", "429", "description"), `"Too many attempts. Rate limits: requests of an address (PerIP)."`},
		"no limit":       {append(get, "responses", "429"), `null`},
		"location":       {append(get, "responses", "303", "headers", "Location"), `{"$ref":"#/components/headers/Location"}`},
		"nothing cached": {append(get, "responses", "200", "headers", "Cache-Control"), `{"$ref":"#/components/headers/Cache-Control"}`},
		"nothing there":  {append(post, "responses", "204"), `{"description":"Made.","headers":{"X-Request-Id":{"$ref":"#/components/headers/X-Request-Id"}}}`},
		"retry":          {append(post, "responses", "429", "headers", "Retry-After"), `{"$ref":"#/components/headers/Retry-After"}`},
		"head":           {append(head, "operationId"), `"headThingsById"`},
		"head errors":    {append(head, "responses", "404", "description"), `"Not found, or switched off."`},
		"head, no body":  {append(head, "responses", "404", "content"), `null`},
		"returned": {[]string{"components", "schemas", "Thing"}, `{"additionalProperties":false,"properties":{"id":{"type":"string"},"kind":{"enum":["a"]},` +
			`"note":{"type":["string","null"]},"part":{"anyOf":[{"$ref":"#/components/schemas/Part"},{"type":"null"}]}},"required":["id","note","part"],"type":"object"}`},
		"items": {[]string{"components", "schemas", "Part", "properties", "of"}, `{"items":{"$ref":"#/components/schemas/Thing"},"type":"array"}`},
		"if":    {[]string{"components", "schemas", "Error", "if"}, `{"properties":{"code":{"const":"x"}}}`},
	} {
		if got := at(t, doc, c.at...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if paths, _ := doc["paths"].(map[string]any); !slices.Equal(slices.Sorted(maps.Keys(paths)), []string{"/things", "/things/{id}"}) {
		t.Errorf("paths %v", paths)
	}
}

// Several parts form one document, and each part can refer to the schemas of the others. The
// bytes are the same each time.
func TestBuildParts(t *testing.T) {
	room := Part{
		Schemas: []byte(`{"schemas": {"Room": {"properties": {"things": {"type": "array", "items": "Thing"}}}}}`),
		Prose: []byte(`{"tags": ["Rooms"], "operations": {"GET /rooms": {"tag": "Rooms", "summary": "All",
			"responses": {"200": {"description": "Them.", "json": "Room", "cache": "public"}}}}}`),
		Routes: []Route{{Pattern: "GET /rooms", Security: [][]string{{"key"}}}},
	}
	doc := build(t, thingsPart(), room)
	if got := at(t, doc, "security"); got != `[{"key":[]}]` {
		t.Error(got)
	}
	if got := at(t, doc, "paths", "/rooms", "get", "responses", "200", "headers", "Cache-Control", "schema"); got != `{"const":"public"}` {
		t.Error(got)
	}
	if got := at(t, doc, "tags"); got != `[{"name":"Things"},{"name":"Rooms"}]` {
		t.Error(got)
	}
	one, _ := Build(envelope, thingsPart(), room)
	for range 20 {
		if other, _ := Build(envelope, thingsPart(), room); !bytes.Equal(one, other) {
			t.Fatal("two builds differ")
		}
	}
}

// Equal responses of several operations become one component, named after their codes, or
// after the status where there are many. The most frequent keeps the plain name.
func TestBuildShares(t *testing.T) {
	many := []Error{{"a_b", 403}, {"b", 403}, {"c", 403}, {"d", 403}}
	var routes []Route
	operations := map[string]any{}
	for i, errors := range [][]Error{many[:3], many[:3], many, {many[3], many[2], many[1], many[0]}, append(many[1:4:4], Error{"e", 403}), append(many[1:4:4], Error{"e", 403}), many, many[:1]} {
		pattern := "POST /" + string(rune('a'+i))
		routes = append(routes, Route{Pattern: pattern, Errors: errors, Security: [][]string{{"key"}}})
		operations[pattern] = map[string]any{"tag": "Things", "summary": "One", "query": map[string]any{"from": map[string]any{"type": []string{"string", "integer"}[min(i/6, 1)]}},
			"responses": map[string]any{"200": map[string]any{"description": "It.", "json": "Thing"}}}
	}
	prose, err := json.Marshal(map[string]any{"operations": operations})
	if err != nil {
		t.Fatal(err)
	}
	things := thingsPart()
	doc := build(t, things, Part{Routes: routes, Prose: prose})
	for i, want := range []string{"ABOrBOrC", "ABOrBOrC", "Forbidden", "Forbidden", "Forbidden2", "Forbidden2", "Forbidden"} {
		operation := []string{"paths", "/" + string(rune('a'+i)), "post"}
		if got := at(t, doc, append(operation, "responses", "403")...); got != `{"$ref":"#/components/responses/`+want+`"}` {
			t.Error(i, got)
		}
		if got := at(t, doc, append(operation, "responses", "200")...); got != `{"$ref":"#/components/responses/Thing"}` {
			t.Error(i, got)
		}
		if got := at(t, doc, append(operation, "parameters")...); got != `[{"$ref":"#/components/parameters/`+[]string{"From", "GFrom"}[i/6]+`"}]` {
			t.Error(i, got)
		}
	}
	for where, want := range map[string]string{
		"paths /h post responses 403 description":   `"Not allowed."`,
		"components responses Forbidden2 $ref":      `null`,
		"components parameters From schema":         `{"type":"string"}`,
		"components parameters GFrom schema":        `{"type":"integer"}`,
		"security":                                  `[{"key":[]}]`,
		"paths /a post security":                    `null`,
		"paths /things/{id} get security":           `[]`,
		"components responses ABOrBOrC description": `"Not allowed."`,
	} {
		if got := at(t, doc, strings.Fields(where)...); got != want {
			t.Errorf("%s: %s, want %s", where, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	long := strings.Repeat("x", 100)
	got, err := Format([]byte(`{"b":{"c":[1,true,"a:,\\\"{"]},"a":["` + long + `",{"` + long + `":"` + long + `"},[],"<"]}`))
	want := "{\n\t\"b\": {\"c\": [1, true, \"a:,\\\\\\\"{\"]},\n\t\"a\": [\n\t\t\"" + long + "\",\n\t\t{\n\t\t\t\"" + long + "\": \"" + long + "\"\n\t\t},\n\t\t[],\n\t\t\"<\"\n\t]\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := Format([]byte(`{"a":}`)); err == nil {
		t.Error("no JSON is formatted")
	}
}

func TestBuildFaults(t *testing.T) {
	prose := func(old, replacement string) Part {
		p := thingsPart()
		p.Prose = []byte(strings.Replace(thingsProse, old, replacement, 1))
		return p
	}
	schemas := func(old, replacement string) Part {
		p := thingsPart()
		p.Schemas = []byte(strings.Replace(things, old, replacement, 1))
		return p
	}
	routes := func(change func([]Route) []Route) Part {
		p := thingsPart()
		p.Routes = change(p.Routes)
		return p
	}
	for name, c := range map[string]struct {
		parts []Part
		want  string
	}{
		"no prose":         {[]Part{prose(`"POST /things"`, `"PUT /things"`)}, "POST /things has no prose: describe it in openapi/prose.json"},
		"no route":         {[]Part{routes(func(r []Route) []Route { return r[:1] })}, "POST /things has prose and no route"},
		"route twice":      {[]Part{routes(func(r []Route) []Route { return append(r, r[1]) })}, "post comes twice"},
		"no info":          {[]Part{prose(`"info": {"title": "Things"}, `, "")}, "no part has an info"},
		"two infos":        {[]Part{thingsPart(), {Prose: []byte(`{"info": {}}`)}}, "two parts have an info"},
		"no summary":       {[]Part{prose(`"summary": "Make"`, `"summary": ""`)}, "POST /things has no summary"},
		"unknown tag":      {[]Part{prose(`"tags": ["Things"]`, `"tags": []`)}, `there is no tag "Things"`},
		"misspelt":         {[]Part{prose(`"form"`, `"from"`)}, `unknown field "from"`},
		"no JSON":          {[]Part{prose(`{`, ``)}, "prose"},
		"no responses":     {[]Part{prose(`{"204": {"description": "Made."}}`, `{}`)}, "POST /things has no responses"},
		"no description":   {[]Part{prose(`"Made."`, `""`)}, "POST /things 204: not a status with a description"},
		"no status":        {[]Part{prose(`"204"`, `"2xx"`)}, "POST /things 2xx: not a status"},
		"error by hand":    {[]Part{prose(`"204"`, `"404"`)}, "404 comes twice"},
		"unnamed":          {[]Part{prose(`{"id": "Which."}`, `{}`)}, "the parameter id has no prose"},
		"unknown limit":    {[]Part{prose(`"PerIP"`, `"PerUser"`)}, "the limit PerIP has no prose"},
		"unknown schema":   {[]Part{schemas(`"Part?"`, `"Whole"`)}, `there is no schema "Whole"`},
		"unknown scheme":   {[]Part{schemas(`"key": {`, `"lock": {`)}, `there is no security scheme "key"`},
		"schema twice":     {[]Part{thingsPart(), {Schemas: []byte(`{"schemas": {"Thing": {}}}`)}}, "Thing comes twice"},
		"no error's code":  {[]Part{routes(func(r []Route) []Route { r[0].Errors = []Error{{"what", 0}}; return r })}, "what is no error with status 0"},
		"all are reported": {[]Part{routes(func(r []Route) []Route { return nil })}, "POST /things has prose and no route"},
	} {
		doc, err := Build(envelope, c.parts...)
		if err == nil || doc != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOperationID(t *testing.T) {
	for pattern, want := range map[string]string{
		"get /me":                          "getMe",
		"get /.well-known/jwks.json":       "getWellKnownJwksJson",
		"post /2fa/verify-and-enable":      "post2faVerifyAndEnable",
		"delete /users/{id}/roles/{role}":  "deleteUsersByIdRolesByRole",
		"delete /me/identities/{provider}": "deleteMeIdentitiesByProvider",
	} {
		method, path, _ := strings.Cut(pattern, " ")
		if got := operationID(method, path); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}
