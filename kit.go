package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/authmount/auth/internal/openapi"
	"github.com/authmount/auth/internal/seal"
	"github.com/authmount/auth/store"
)

// Kit is what Authmount's own packages (rooms) build on: the machinery behind the
// endpoints, without a second copy of any rule. Only they can get one, and
// nothing of it is frozen.
type Kit struct{ a *Auth }

// Kit returns the machinery for Authmount's own packages; a key can be made in
// this module only.
func (a *Auth) Kit(key seal.Key) Kit {
	key.Check()
	return Kit{a}
}

// KitAccess says who may call an endpoint of a package built on Auth.
type KitAccess int

// The accesses.
const (
	KitOpen      KitAccess = iota // anybody: navigations of a browser
	KitKeyed                      // the public API key, where keys are configured
	KitSignedIn                   // the API key and a live session; see HTTP.Current
	KitOperating                  // KitSignedIn, or a secret key in place of both; see Keys.GivenKey
	KitElsewhere                  // a secret key, or a request that passed CheckOrigin and whose caller the package finds itself
)

// KitRoute is one row of a room's route table.
type KitRoute struct {
	Pattern string // method and path below the room's prefix
	Access  KitAccess
	WhenOff bool     // it is there while Settings.Enabled is off, too, and judges itself for whom
	Errors  []string // codes, beyond those that follow from the access and a body
	Handle  func(http.ResponseWriter, *http.Request) error

	// Streams leaves the body to Handle, which judges who asks once more when it has
	// read the last of it.
	Streams bool

	Form func(http.ResponseWriter, *http.Request) error // of a link's page, which posts to itself
}

// Handler serves a room's routes below a path of the mount, such as "/admin",
// with and without the mount's own prefix: request ids, panics, errors, access
// and settings as the other endpoints have them.
func (k Kit) Handler(below string, routes []KitRoute) http.Handler {
	return k.a.mount(roomRows(below, routes))
}

// Describe adds a room's routes to the OpenAPI document, with what was written for
// them (see package internal/openapi). It has to come before the document is read.
func (k Kit) Describe(below string, routes []KitRoute, schemas, prose []byte) {
	k.a.rooms.add(openapi.Part{Routes: described(roomRows(below, routes)), Schemas: schemas, Prose: prose})
}

func roomRows(below string, routes []KitRoute) []route {
	rows := make([]route, 0, len(routes))
	for _, r := range routes {
		method, path, _ := strings.Cut(r.Pattern, " ")
		row := route{pattern: method + " " + below + path, access: accessOf(r.Access), whenOff: r.WhenOff, judges: r.WhenOff, streams: r.Streams, errors: codes(r.Errors), handle: r.Handle, form: r.Form}
		if row.takesSecretKeys() {
			row.limits = []string{"SecretKeysPerIP"}
		}
		rows = append(rows, row)
	}
	return rows
}

// accessOf is an access of package host in the route table.
func accessOf(a KitAccess) access {
	return map[KitAccess]access{KitOpen: open, KitKeyed: keyed, KitSignedIn: signedIn, KitOperating: operating, KitElsewhere: elsewhere}[a]
}

func codes(list []string) (out []Code) {
	for _, c := range list {
		out = append(out, Code(c))
	}
	return out
}

// Store is where everything is kept.
func (k Kit) Store() Store { return k.a.store }

// Now is the clock, in the precision that stores keep.
func (k Kit) Now() time.Time { return k.a.now() }

// NewID makes a UUIDv7 (RFC 9562).
func (k Kit) NewID() string { return k.a.newID() }

// Decode reads a JSON object into the struct that v points to, strictly.
func (k Kit) Decode(r *http.Request, v any) error { return decode(r, v) }

// DecodeOptional is Decode for endpoints whose body may be absent.
func (k Kit) DecodeOptional(r *http.Request, v any) error { return decodeOptional(r, v) }

// WriteJSON writes a response.
func (k Kit) WriteJSON(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, v)
}

// Error makes the error of a code; cause, which may be nil, goes to the log only.
func (k Kit) Error(c Code, cause error) *Error { return fail(c, cause) }

// Invalid is CodeValidationFailed for one field.
func (k Kit) Invalid(field, problem string) *Error { return invalid(field, problem) }

// StoreError makes an error of what a store returned.
func (k Kit) StoreError(err error) error { return storeFailed(err) }

// Current is the session and user of a request that was let through as
// KitSignedIn.
func (k Kit) Current(ctx context.Context) (Session, User) {
	me := currentFrom(ctx)
	return me.session, me.user
}

// Change begins a change of the store in somebody's name, with its events, none of
// which is one that an owner has to be told of.
func (k Kit) Change(ctx context.Context, by Authority, events ...store.OutcomeEvent) store.Change {
	return k.a.newChange(ctx, by, events...)
}

// ChangeOf is Change of a user, as read before it, with the notices that its
// events call for.
func (k Kit) ChangeOf(ctx context.Context, by Authority, u User, events ...store.OutcomeEvent) store.Change {
	return k.a.newChangeOf(ctx, by, account{User: u}, events...)
}

// Committed sends the messages of a change that has come about and tells the
// hooks. edit, which may be
// nil, completes the events with what only the store knew.
func (k Kit) Committed(ctx context.Context, c store.Change, edit func(*Event)) {
	k.a.committed(ctx, c, store.OutcomeDone, edit)
}

// Draw names the bucket of a rate limit and what it counts by.
func (k Kit) Draw(r Rate, limit, value string, cost int) store.Draw {
	return k.a.draw(r, limit, value, cost)
}

// Take draws from rate limits, or returns CodeRateLimited.
func (k Kit) Take(ctx context.Context, draws ...store.Draw) error {
	return k.a.take(ctx, draws...)
}

// Roles is the table of roles as this process knows it: a second old at most, and
// never older than a change that it was told of. It is shared, and not to be changed.
func (k Kit) Roles(ctx context.Context) (store.RoleTable, error) {
	if k.a.roleStore == nil {
		return store.RoleTable{}, nil
	}
	known, err := k.a.rolePermissions(ctx)
	if err == nil && known.younger(rolesFor) {
		return known.table, nil
	}
	return k.a.roleStore.Roles(ctx) // tokens make do with what is older while somebody reads, or nobody can
}

// ForgetRoles has what roles permit read anew, after it was changed.
func (k Kit) ForgetRoles() { k.a.roleTable.known.Store(nil) }

// KitMail is a message of a kind that has a template.
type KitMail struct {
	Kind       store.Kind
	To         store.User // the address is the user's
	NewAddress string
	Provider   string
}

// MessagesSent waits until this process holds no message that is to be sent, at
// most until ctx ends.
func (k Kit) MessagesSent(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for k.a.outbox.underWay() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Enclose puts a message to a user into a change; Committed sends it.
func (k Kit) Enclose(ctx context.Context, c *store.Change, m KitMail) {
	k.a.enclose(ctx, c, outgoing{Kind: m.Kind, To: m.To.Email, NewAddress: m.NewAddress, Provider: m.Provider}, m.To, nil)
}

// KitCodes are error codes as a KitRoute has them.
func KitCodes[C ~string](list ...C) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = string(c)
	}
	return out
}
