package auth

import (
	"cmp"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/authmount/auth/internal/openapi"
)

// What people wrote of the OpenAPI document; the rest follows from the route
// table. Package openapi tells what the files hold.
var (
	//go:embed openapi/schemas.json
	openAPISchemas []byte
	//go:embed openapi/prose.json
	openAPIProse []byte
)

// document writes the OpenAPI document of the route table.
func (a *Auth) document() ([]byte, error) {
	part := openapi.Part{Schemas: openAPISchemas, Prose: openAPIProse, Routes: described(a.routes())}
	return openapi.Build(openapi.Envelope{
		Server:  cmp.Or(a.cfg.prefix, "/"),
		Always:  documented(nil, CodeNotFound, CodeMethodNotAllowed, CodeInternal, CodeUnavailable),
		Body:    documented(nil, CodeBadJSON, CodeBodyTooLarge, CodeUnsupportedMediaType),
		Limited: documented(nil, CodeRateLimited),
	}, append([]openapi.Part{part}, a.rooms.all()...)...)
}

// rooms are the parts of the document that Authmount's own packages add.
type rooms struct {
	mu    sync.Mutex
	parts []openapi.Part
}

func (r *rooms) add(p openapi.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, p)
}

func (r *rooms) all() []openapi.Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.parts)
}

func described(rows []route) []openapi.Route {
	list := make([]openapi.Route, 0, len(rows))
	for _, rt := range rows {
		list = append(list, rt.described())
	}
	return list
}

// described is the row as the document needs it: with the errors of its access.
func (rt route) described() openapi.Route {
	r := openapi.Route{Pattern: rt.pattern, Limits: rt.limits, Forms: rt.done != ""}
	switch rt.access {
	case open:
	case elsewhere:
		r.Security = [][]string{{"secret-key"}, {}} // what the application asks for, it alone knows
		r.Errors = documented(nil, CodeInvalidAPIKey, CodeMissingToken, CodeBadToken, CodeSessionEnded, CodeUserBanned)
	case keyed:
		r.Security = [][]string{{"apikey"}, {"x-api-key"}, {}} // a server without keys asks for none
		r.Errors = documented(nil, CodeInvalidAPIKey)
	case signedIn, enrolling, operating:
		r.Security = [][]string{{"bearer", "apikey"}, {"bearer", "x-api-key"}, {"bearer"}}
		if rt.access == operating {
			r.Security = append(r.Security, []string{"secret-key"})
		}
		r.Errors = documented(nil, CodeInvalidAPIKey, CodeMissingToken, CodeBadToken, CodeTokenStale, CodeSessionEnded, CodeUserBanned)
	}
	if rt.form != nil || (rt.access != open && !strings.HasPrefix(rt.pattern, http.MethodGet)) { // any of them may ask for cookies
		r.Errors = append(r.Errors, documented(nil, CodeCrossSiteRequest)...)
	}
	if rt.done != "" {
		r.Errors = append(r.Errors, documented(nil, CodeRedirectNotAllowed)...)
	}
	if !rt.act || rt.access == keyed {
		r.Errors = append(r.Errors, documented(nil, CodeImpersonationForbidden)...)
	}
	r.Errors = append(r.Errors, documented(rt.statuses, rt.errors...)...)
	return r
}

// documented looks the statuses of codes up, first in those that differ.
func documented(differ map[Code]int, codes ...Code) []openapi.Error {
	var list []openapi.Error
	for _, c := range codes {
		status, ok := differ[c]
		if !ok {
			status = errorTable[c].Status
		}
		list = append(list, openapi.Error{Code: string(c), Status: status})
	}
	return list
}

// handleOpenAPI returns the handler of the document, which is written when it is
// first asked for.
func (a *Auth) handleOpenAPI() func(http.ResponseWriter, *http.Request) error {
	written := sync.OnceValues(a.document)
	return func(w http.ResponseWriter, _ *http.Request) error {
		doc, err := written()
		if err != nil {
			return fail(CodeInternal, fmt.Errorf("write the document: %w", err))
		}
		return writeDocument(w, doc)
	}
}
