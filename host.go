package auth

import (
	"context"
	"encoding/base32"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/openapi"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// kit implements host.Kit for this module's packages that are built on Auth. Package
// host describes each method.
type kit struct{ a *Auth }

var _ host.Kit = kit{}

func init() {
	host.Register(func(a any) host.Kit { return kit{a.(interface{ self() *Auth }).self()} }, hostSettings())
}

// self returns the Auth, even if a struct embeds it.
func (a *Auth) self() *Auth { return a }

func (k kit) Handler(below string, routes []host.Route) http.Handler {
	return k.a.mount(hostRoutes(below, routes))
}

func (k kit) Describe(below string, routes []host.Route, schemas, prose []byte) {
	k.a.documentParts.add(openapi.Part{Routes: described(hostRoutes(below, routes)), Schemas: schemas, Prose: prose})
}

func hostRoutes(below string, routes []host.Route) []route {
	rows := make([]route, 0, len(routes))
	for _, r := range routes {
		method, path, _ := strings.Cut(r.Pattern, " ")
		row := route{pattern: method + " " + below + path, access: accessOf(r.Access), whenOff: r.WhenDisabled, authenticates: r.WhenDisabled, streams: r.Streams, cookies: r.Cookies, noKeys: r.NoKeys, errors: codes(r.Errors), handle: r.Handle, form: r.Form}
		if row.takesSecretKeys() {
			row.limits = []string{"SecretKeysPerIP"}
		}
		rows = append(rows, row)
	}
	return rows
}

// accessOf maps an access of package host to one of the route table.
func accessOf(a host.Access) access {
	return map[host.Access]access{host.Open: open, host.Keyed: keyed, host.SignedIn: signedIn, host.Operating: operating, host.Elsewhere: elsewhere}[a]
}

func codes(list []string) (out []Code) {
	for _, c := range list {
		out = append(out, Code(c))
	}
	return out
}

func (k kit) Store() Store { return k.a.store }

func (k kit) Now() time.Time { return k.a.now() }

func (k kit) NewID() string { return k.a.newID() }

func (k kit) Decode(r *http.Request, v any) error { return decode(r, v) }

func (k kit) DecodeOptional(r *http.Request, v any) error { return decodeOptional(r, v) }

func (k kit) WriteJSON(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, v)
}

func (k kit) Error(code string, cause error) error { return fail(Code(code), cause) }

func (k kit) Invalid(field, problem string) error { return invalid(field, problem) }

func (k kit) StoreError(err error) error { return storeFailed(err) }

func (k kit) Current(ctx context.Context) (Session, User) {
	me := currentFrom(ctx)
	return me.session, me.user
}

func (k kit) Change(ctx context.Context, by Authority, events ...store.OutcomeEvent) store.Change {
	return k.a.newChange(ctx, by, events...)
}

func (k kit) ChangeOf(ctx context.Context, by Authority, u User, events ...store.OutcomeEvent) store.Change {
	return k.a.newChangeOf(ctx, by, account{User: u}, events...)
}

func (k kit) Committed(ctx context.Context, c store.Change, edit func(*Event)) {
	k.a.committed(ctx, c, store.OutcomeDone, edit)
}

func (k kit) Draw(r Rate, limit, value string, cost int) store.Draw {
	return k.a.draw(r, limit, value, cost)
}

func (k kit) CheckLimits(ctx context.Context, draws ...store.Draw) error {
	return k.a.take(ctx, draws...)
}

func (k kit) LimitsLeft(ctx context.Context, draws ...store.Draw) ([]int, error) {
	if len(draws) == 0 {
		return nil, nil
	}
	draws = slices.Clone(draws)
	for i := range draws {
		draws[i].Cost = 0
	}
	d, err := k.a.store.Take(ctx, draws, k.a.now())
	if err != nil {
		return nil, storeFailed(err)
	}
	return d.Remaining, nil
}

func (k kit) Roles(ctx context.Context) (store.RoleTable, error) {
	if k.a.project == nil {
		return store.RoleTable{}, nil
	}
	known, err := k.a.rolePermissions(ctx)
	if err == nil && known.younger(rolesFor) {
		return known.table, nil
	}
	return k.a.project.Roles(ctx) // tokens use older roles while a read is in progress or fails
}

func (k kit) PrivilegedRoles() []string { return k.a.cfg.privileged }

func (k kit) DeclarePermissions(names []string) { k.a.declaredPermissions.Store(&names) }

func (k kit) DeclarePrivileged(permissions []string) { k.a.privilegedPermissions.Store(&permissions) }

func (k kit) RolesIn(ctx context.Context, u User, s Session) ([]string, error) {
	roles, _, err := k.a.rolesAt(ctx, u, s)
	return roles, err
}

func (k kit) WithheldIn(ctx context.Context, u User, s Session) ([]string, error) {
	return k.a.withheldIn(ctx, u, s)
}

func (k kit) Standing(t store.RoleTable, u User) host.Standing {
	s := k.a.standingIn(rolesOf(t), u)
	return host.Standing{Roles: s.roles, Permissions: s.permissions, Waits: s.waits}
}

func (k kit) SetRoles(p *store.UserPatch, t store.RoleTable, u User, roles []string) (asks bool) {
	return k.a.setRoles(p, rolesOf(t), u, roles)
}

func (k kit) OperatorRoles(t store.RoleTable) []string {
	known := rolesOf(t)
	list := slices.Concat([]string{RoleOwner, roleAdmin}, k.a.cfg.privileged, t.Privileged)
	for _, r := range t.Roles {
		if len(k.a.holdsOperator(known, []string{r.Name})) > 0 {
			list = append(list, r.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (k kit) RolesAskedFor() []string { return rolesAskedFor.list() }

func (k kit) ReloadRoles() { k.a.roleTable.known.Store(nil) }

func (k kit) WaitForMessages(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for k.a.outbox.Pending() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k kit) AddMessage(ctx context.Context, c *store.Change, m host.Mail) {
	k.a.enclose(ctx, c, outbox.Outgoing{Kind: m.Kind, To: m.To.Email, NewAddress: m.NewAddress, Provider: m.Provider}, m.To, nil)
}

// Methods for the admin API.

func (k kit) RecentlyAuthenticated(u User, s Session) bool {
	if u.MFAEnabled {
		return k.a.freshAAL2(s)
	}
	return k.a.recentlyAuthenticated(s)
}

func (k kit) Busy(cause error) error { return retryAfter(CodeUnavailable, time.Second, cause) }

func (k kit) RequestIDs(ctx context.Context) (id, server string) { return requestIDs(ctx) }

func (k kit) Emit(ctx context.Context, by Authority, e Event) {
	e.Actor = actorOf(by, e)
	k.a.emit(ctx, e)
}

func (k kit) RemoveTokens(c store.RevokeSessions) store.RevokeSessions {
	c.DropTokens, c.DropDevices = purposesOfPassword(), true
	return c
}

func (k kit) DeleteUser(ctx context.Context, u User, c store.DeleteUser) error {
	return k.a.endUser(ctx, u, c)
}

func (k kit) Fingerprint(sum []byte) []byte {
	return []byte(k.a.keys.RateLimit("request", string(sum)))
}

// Methods for the audit log and metrics.

func (k kit) Flush(ctx context.Context) error {
	if err := k.a.recorder.Flush(ctx); err != nil {
		return storeFailed(err)
	}
	if err := k.a.counter.Flush(ctx); err != nil {
		return storeFailed(err)
	}
	return nil
}

func (k kit) EventsLost() int { return k.a.recorder.Lost() }

func (k kit) MarkStale(u User) {
	k.a.Revoke(store.Revocation{UserID: u.ID, Stale: u.CredentialRevision, At: k.a.now()})
}

func (k kit) MarkRoleStale(role string, t store.RoleTable) {
	k.a.Revoke(store.Revocation{Role: role, Stale: t.Revision, At: k.a.now()})
}

// Methods for jobs of the admin API.

func (k kit) Background(f func(ctx context.Context)) { k.a.background.Run(f) }

func (k kit) SealJob(jobID string, plain []byte) []byte {
	return k.a.keys.SealJob(plain, []byte(jobID))
}

func (k kit) OpenJob(jobID string, sealed []byte) ([]byte, error) {
	return k.a.keys.OpenJob(sealed, []byte(jobID))
}

func (k kit) JobContext(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

func (k kit) HasBulkImport() bool { return k.a.admin != nil && k.a.creating() == nil }

func (k kit) ImportAll(ctx context.Context, c store.CreateUsers) ([]error, error) {
	if !k.HasBulkImport() {
		return nil, errors.ErrUnsupported
	}
	return k.a.admin.CreateUsers(ctx, c)
}

func (k kit) AddPasswordHash(ctx context.Context, c *store.Change, u User, hash string, p *store.UserPatch) error {
	had, err := k.a.store.Credentials(ctx, store.ByID(u.ID))
	if err != nil || had.PasswordHash == hash {
		return err
	}
	chosen, err := k.a.choosePassword(ctx, PasswordChange{u, passwordByOperator}, newPassword{hash: hash}, nil)
	if err != nil {
		return err
	}
	setPassword(p, chosen)
	p.Revoke, p.DropDevices = &store.SessionFilter{}, true
	p.DropTokens = append(p.DropTokens, purposesOfPassword()...)
	k.a.addEvent(ctx, c, account{User: u}, EventPasswordChanged)
	return nil
}

// Methods for API keys of the admin API.

func (rt route) takesSecretKeys() bool { return rt.access == operating || rt.access == elsewhere }

func (k kit) RequestKey(ctx context.Context) (string, bool) {
	text, ok := ctx.Value(secretKeyKey{}).(string)
	return text, ok
}

func (k kit) SecretKey(ctx context.Context, text string) (store.APIKey, error) {
	return k.a.secretKey(ctx, text)
}

func (k kit) DecideKeys(decide func(context.Context, store.APIKey) ([]string, error)) {
	k.a.keyPermissions.Store(&decide)
}

func (k kit) SecretKeys() []store.APIKey { return k.a.cfg.secretKeys }

// optionKeyName is the prefix of the names of secret keys set by options.
const optionKeyName = "secret key "

func (k kit) SecretKeyNamed(name string) (key store.APIKey, named, there bool) {
	at := slices.IndexFunc(k.SecretKeys(), func(key store.APIKey) bool { return key.Name == name })
	if at < 0 {
		return store.APIKey{}, strings.HasPrefix(name, optionKeyName), false
	}
	return k.SecretKeys()[at], true, true
}

func (k kit) ReloadKeys() { k.a.publicKeys.forget() }

func (k kit) CheapPasswords() (cheap bool, err error) {
	p := k.a.passwords
	if !p.usual {
		return false, nil
	}
	p.o.Argon2id = Argon2idParams{Memory: 64, Time: 1, Threads: 1}
	return true, p.makeDummy()
}

func (k kit) BeginTOTP(ctx context.Context, by SessionRef, mfaToken string) (secret string, err error) {
	_, raw, err := k.a.beginTOTP(ctx, SetupTOTPParams{Caller: Caller{UserID: by.UserID, SessionID: by.ID}, MFAToken: mfaToken})
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw), err
}

func (k kit) Hashes() uint64 { return k.a.passwords.hashCount() }

func (k kit) Refund(ctx context.Context) error { return k.a.refunds.flush(ctx) }

func (k kit) DelayRefunds() { k.a.refunds.after = func(time.Duration, func()) {} }

func (k kit) Lease() time.Duration { return k.a.outbox.Lease() }

func (k kit) OpenMessage(m store.SealedMessage) (Kind, string, error) {
	o, err := k.a.openMessage(m)
	return o.Kind, o.To, err
}

func (k kit) NoticeOf(e EventType) (Kind, bool) { return noticeOf(e) }

func (k kit) WithBodyWait(d time.Duration) any { return Option(func(c *config) { c.bodyWait = d }) }

func (k kit) Statuses() map[string]int {
	m := map[string]int{}
	for c, row := range errorTable {
		m[string(c)] = row.Status
	}
	return m
}

func (k kit) RouteTable() []host.RouteInfo {
	var list []host.RouteInfo
	for _, r := range k.a.routes() {
		within := slices.Contains(r.errors, CodeMissingToken) && slices.Contains(r.errors, CodeSessionEnded)
		list = append(list, host.RouteInfo{
			Pattern: r.pattern, Limits: r.limits, Errors: host.Codes(r.errors...), Open: r.access == open,
			Session: r.access == signedIn || r.access == enrolling || within, Form: r.form != nil || r.done != "",
		})
	}
	return list
}
