package admin

import (
	"context"
	"net/http"
	"path"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/seal"
)

// Room is what pages over the operations build on: the endpoints as they are, for
// somebody whom the pages know. Only Authmount's own packages can get one, and nothing
// of it is frozen.
type Room struct {
	m   *Admin
	mux *http.ServeMux
	ops map[string]operation // by their patterns
}

// Room returns the machinery for Authmount's own packages.
func (m *Admin) Room(key seal.Key) Room {
	key.Check()
	r := Room{m: m, mux: http.NewServeMux(), ops: map[string]operation{}}
	for _, e := range endpoints() {
		r.ops[e.op.pattern] = e.op
		r.mux.HandleFunc(e.op.pattern, func(w http.ResponseWriter, req *http.Request) {
			c, ok := req.Context().Value(callKey{}).(*call)
			if ok {
				c.err = m.answer(e, c.who, w, req)
			}
		})
	}
	return r
}

// call is one use of an endpoint by a page.
type call struct {
	who Actor
	err error
}

type callKey struct{}

// FirstOwnerLink is Admin.FirstOwnerLink.
func (r Room) FirstOwnerLink(ctx context.Context) (string, error) { return r.m.FirstOwnerLink(ctx) }

// Auth is the service that the operations are of.
func (r Room) Auth() *auth.Auth { return r.m.auth }

// Serve has the endpoint answer that a request's method and path, below /admin, name,
// for somebody. Errors: those of the operation, CodeNotFound where there is none.
func (r Room) Serve(who Actor, w http.ResponseWriter, req *http.Request) error {
	c := &call{who: who, err: r.m.fail(auth.CodeNotFound, nil)}
	req = req.WithContext(context.WithValue(req.Context(), callKey{}, c))
	if _, pattern := r.mux.Handler(req); pattern != "" && path.Clean(req.URL.Path) == req.URL.Path {
		r.mux.ServeHTTP(w, req)
	}
	return c.err
}

// Elsewhere tells whether the application has an admin login of its own
// (Options.Authorize), and who by its word sent a request.
func (r Room) Elsewhere(req *http.Request) (who Actor, ok bool, err error) {
	if r.m.authorize == nil {
		return Actor{}, false, nil
	}
	who, err = r.m.asksElsewhere(req)
	return who, true, err
}

// HasLogin tells whether the application has an admin login of its own.
func (r Room) HasLogin() bool { return r.m.authorize != nil }

// Known is somebody as read for one page.
type Known struct {
	Label string
	Admin bool // they may do anything at all here
	r     Room
	a     *acting
	who   Actor
}

// Known reads who somebody is. Errors: CodeSessionEnded, CodeUserBanned,
// CodeMissingToken.
func (r Room) Known(ctx context.Context, who Actor) (Known, error) {
	at := r.m.kit.Now()
	a, err := r.m.resolve(ctx, who, opMe)
	if err != nil {
		return Known{}, err
	}
	if a.user != nil {
		who.seen = &seen{at: at, session: a.session, user: *a.user}
	}
	return Known{Label: a.label, Admin: r.m.permissions.admits(a.permissions), r: r, a: a, who: who}, nil
}

// Looking is somebody for the operations of one page: those that change nothing go by the
// session as it was read.
func (k Known) Looking() Actor { return k.who }

// May judges what an operation, by its method and path, asks of somebody; whom it is
// about is judged when it happens. Errors: CodeNotAdmin, CodeMissingPermission,
// CodeInsufficientAAL, CodeReauthNeeded; CodeNotFound if there is no such operation.
func (k Known) May(pattern string) error {
	op, ok := k.r.ops[pattern]
	if !ok {
		return k.r.m.fail(auth.CodeNotFound, nil)
	}
	return k.r.m.allow(k.a, op)
}

// Try is May for somebody who has come to do it: a refusal is recorded, as that of the
// operation itself is.
func (k Known) Try(ctx context.Context, pattern string) error {
	err := k.May(pattern)
	if op, ok := k.r.ops[pattern]; ok && err != nil {
		return k.r.m.denied(ctx, &turn{acting: k.a, record: k.r.m.recordOf(ctx, k.a, op)}, err)
	}
	return err
}

// KeysMay tells whether a key may have a permission at all.
func (r Room) KeysMay(permission string) bool { return !slices.Contains(notForKeys(), permission) }

// Holds tells whether somebody has a permission.
func (k Known) Holds(permission string) bool { return k.a.may(permission) }
