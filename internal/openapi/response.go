package openapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// headers returns the headers that responses may have.
func headers() object {
	header := func(description string, schema object) object {
		return object{"required": true, "description": description, "schema": schema}
	}
	return object{
		"X-Request-Id":     header("Names the request in the log.", object{"type": "string"}),
		"Cache-Control":    header("For the caller only.", object{"const": "no-store"}),
		"Retry-After":      header("Whole seconds to wait.", object{"type": "string", "pattern": "^[1-9][0-9]*$"}),
		"WWW-Authenticate": header("RFC 6750.", object{"type": "string", "pattern": "^Bearer"}),
		"Allow":            header("The allowed methods.", object{"type": "string"}),
		"Location":         header("The next URL.", object{"type": "string"}),
	}
}

// promises returns the headers of a status, in addition to X-Request-Id.
func promises(status int) []string {
	switch status {
	case http.StatusFound, http.StatusSeeOther:
		return []string{"Location"}
	case http.StatusUnauthorized:
		return []string{"WWW-Authenticate"}
	case http.StatusMethodNotAllowed:
		return []string{"Allow"}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return []string{"Retry-After"}
	}
	return nil
}

// meaning describes the statuses of errors.
func meaning(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "The request is invalid."
	case http.StatusUnauthorized:
		return "Not authenticated."
	case http.StatusForbidden:
		return "Not allowed."
	case http.StatusNotFound:
		return "Not found, or switched off."
	case http.StatusMethodNotAllowed:
		return "Method not allowed."
	case http.StatusConflict:
		return "Conflicts with existing data."
	case http.StatusRequestEntityTooLarge:
		return "The body is too large."
	case http.StatusUnsupportedMediaType:
		return "Unsupported media type."
	case http.StatusUnprocessableEntity:
		return "Validation failed."
	case http.StatusTooManyRequests:
		return "Too many attempts."
	case http.StatusInternalServerError:
		return "Internal server error."
	case http.StatusBadGateway:
		return "The provider returned an invalid response."
	case http.StatusServiceUnavailable:
		return "The service cannot answer right now."
	}
	return http.StatusText(status) + "."
}

// headersOf returns references to the headers of a response.
func headersOf(names ...string) object {
	h := object{"X-Request-Id": object{"$ref": "#/components/headers/X-Request-Id"}}
	for _, name := range names {
		h[name] = object{"$ref": "#/components/headers/" + name}
	}
	return h
}

// responses returns the successful responses, as written, and the errors.
func (b *builder) responses(rt Route, op operation, p prose) object {
	all := object{}
	var page bool // errors are pages if successes are
	for status, r := range op.Responses {
		n, err := strconv.Atoi(status)
		if err != nil || r.Description == "" {
			b.fault("%s %s: not a status with a description", rt.Pattern, status)
		}
		page = page || slices.Contains(r.Other, "text/html")
		all[status] = b.success(n, r)
	}
	if len(all) == 0 {
		b.fault("%s has no responses", rt.Pattern)
	}
	statuses, codes := b.errors(rt, op)
	for _, status := range statuses {
		description := meaning(status)
		if status == http.StatusTooManyRequests && len(rt.Limits) > 0 {
			description += b.limits(rt, p)
		}
		b.merge(all, object{strconv.Itoa(status): b.failure(status, codes[status], description, page)})
	}
	return all
}

func (b *builder) success(status int, r response) shareable {
	o := object{"description": r.Description}
	name := statusName(status)
	content := object{}
	if r.JSON != nil {
		content["application/json"] = object{"schema": b.schema(r.JSON, true)}
		if schema, ok := r.JSON.(string); ok {
			name = schema
		}
	}
	for _, mediaType := range r.Other {
		content[mediaType] = object{"schema": object{"type": "string"}}
	}
	names := promises(status)
	if len(content) > 0 {
		o["content"] = content
	}
	if len(content) > 0 || len(names) > 0 {
		names = append(names, "Cache-Control")
	}
	h := headersOf(names...)
	if r.Cache != "" {
		h["Cache-Control"] = object{"required": true, "description": "The same for all callers.", "schema": object{"const": r.Cache}}
	}
	o["headers"] = h
	return shareable{name, o}
}

// errors returns the codes that a route may return, by status.
func (b *builder) errors(rt Route, op operation) (statuses []int, codes map[int][]string) {
	list := slices.Clone(b.envelope.Always)
	if op.JSON != nil || op.Form != nil {
		list = append(list, b.envelope.Body...)
	}
	if len(rt.Limits) > 0 {
		list = append(list, b.envelope.Limited...)
	}
	codes = map[int][]string{}
	for _, e := range append(list, rt.Errors...) {
		if e.Status < http.StatusBadRequest {
			b.fault("%s: %s is no error with status %d", rt.Pattern, e.Code, e.Status)
		}
		if codes[e.Status] == nil {
			statuses = append(statuses, e.Status)
		}
		if !slices.Contains(codes[e.Status], e.Code) {
			codes[e.Status] = append(codes[e.Status], e.Code)
		}
	}
	return statuses, codes
}

// limits describes a route's rate limits.
func (b *builder) limits(rt Route, p prose) string {
	var list []string
	for _, name := range rt.Limits {
		if p.Limits[name] == "" {
			b.fault("the limit %s has no prose: describe it in openapi/prose.json", name)
		}
		list = append(list, p.Limits[name]+" ("+name+")")
	}
	return " Rate limits: " + strings.Join(list, ", ") + "."
}

// failure returns the response of an error.
func (b *builder) failure(status int, codes []string, description string, page bool) shareable {
	slices.Sort(codes)
	name := failureName(status, codes)
	content := object{"application/json": object{"schema": object{"allOf": []any{
		b.named("Error"), object{"properties": object{"code": object{"enum": codes}}},
	}}}}
	if page {
		content["text/html"] = object{"schema": object{"type": "string"}}
		name += "Page"
	}
	return shareable{name, object{"description": description, "headers": headersOf(append(promises(status), "Cache-Control")...), "content": content}}
}

// head returns the HEAD of a GET: it changes nothing and has no body.
func (b *builder) head(rt Route, path string, op operation, p prose) object {
	o := b.common(rt, "head", path, op, p)
	o["summary"] = "The headers of GET " + path
	o["description"] = "Changes nothing."
	responses := object{}
	statuses, _ := b.errors(rt, op)
	for _, status := range append(statuses, http.StatusOK) {
		description := meaning(status)
		if status == http.StatusOK {
			description = "Found."
		}
		responses[strconv.Itoa(status)] = shareable{"Head" + statusName(status), object{"description": description, "headers": headersOf(promises(status)...)}}
	}
	o["responses"] = responses
	return o
}
