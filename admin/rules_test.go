package admin_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// example is a request of an operation that succeeds with the permission.
type example struct {
	query, body string
	media       string // of the body; JSON if empty
	status      int
	prepare     func(o *office, target *authtest.SignedIn) // creates the target of the operation
}

// examples has one row for each operation; TestEveryOperationHasAnExample fails for a
// missing one.
var examples = map[string]example{
	"GET /me":                    {status: 200},
	"GET /users":                 {status: 200},
	"GET /users/{id}":            {status: 200},
	"GET /users/export":          {status: 200},
	"GET /users/lookup":          {query: "?provider=github&subject=$id", prepare: (*office).link, status: 200},
	"POST /users":                {body: `{"email":"$id@new.example.com"}`, status: 201},
	"PATCH /users/{id}":          {body: `{"full_name":"Ada"}`, status: 200},
	"POST /users/{id}/password":  {body: `{"password":"a phrase of four words"}`, status: 200},
	"POST /users/{id}/unlock":    {status: 200},
	"GET /users/{id}/factors":    {status: 200},
	"DELETE /users/{id}/factors": {prepare: (*office).arm, status: 200},

	"DELETE /users/{id}/factors/{factor}":      {prepare: (*office).arm, status: 200},
	"DELETE /users/{id}/identities/{identity}": {body: `{"force":true}`, prepare: (*office).link, status: 200},

	"POST /users/{id}/ban":            {body: `{"reason":"spam"}`, status: 200},
	"POST /users/{id}/unban":          {status: 200},
	"POST /users/{id}/delete":         {body: `{"reason":"asked for it"}`, status: 204},
	"GET /permissions":                {status: 200},
	"GET /roles":                      {status: 200},
	"GET /roles/{role}":               {status: 200},
	"GET /roles/matrix":               {status: 200},
	"GET /roles/{role}/users":         {status: 200},
	"POST /roles":                     {body: `{"name":"r-$id"}`, status: 201},
	"PATCH /roles/{role}":             {body: `{"permissions":[]}`, status: 200},
	"DELETE /roles/{role}":            {status: 200},
	"PUT /users/{id}/roles":           {body: `{"roles":[]}`, status: 200},
	"POST /users/{id}/roles/{role}":   {status: 200},
	"DELETE /users/{id}/roles/{role}": {status: 200},
	"POST /check":                     {body: `{"user_id":"$id","permission":"notes.write"}`, status: 200},
	"GET /users/{id}/sessions":        {status: 200},
	"DELETE /users/{id}/sessions":     {status: 204},
	"DELETE /sessions/{id}":           {status: 204},
	"GET /keys":                       {status: 200},
	"POST /keys":                      {body: `{"name":"deploy","scopes":["auth.users.read"]}`, status: 200},
	"PATCH /keys/{id}":                {body: `{"scopes":["auth.users.read","auth.users.ban"]}`, status: 200},
	"POST /keys/verify":               {body: `{"key":"sk_live_x"}`, status: 200},
	"POST /keys/{id}/rotate":          {body: `{"overlap":60}`, status: 200},
	"DELETE /keys/{id}":               {status: 204},
	"POST /users/{id}/impersonate":    {body: `{"reason":"ticket 7"}`, status: 200},
	"GET /sessions":                   {status: 200},
	"POST /sessions/revoke":           {body: `{"user_ids":["$id"]}`, status: 200},
	"GET /impersonations":             {status: 200},
	"DELETE /impersonations/{id}":     {status: 204},
	"GET /audit-logs":                 {status: 200},
	"POST /invitations":               {body: `{"email":"$email"}`, status: 201},
	"GET /invitations":                {status: 200},
	"POST /links":                     {body: `{"type":"magic_link","user_id":"$id"}`, status: 201},
	"POST /users/{id}/send":           {body: `{"type":"magic_link"}`, status: 202},
	"GET /users/{id}/export":          {status: 200},
	"GET /messages":                   {status: 200},
	"POST /messages/{id}/retry":       {status: 202},
	"POST /users/{id}/anonymize":      {body: `{"reason":"asked for it"}`, status: 200},
	"POST /invitations/{id}/resend":   {status: 200},
	"DELETE /invitations/{id}":        {status: 204},
	"GET /users/{id}/events":          {status: 200},

	"POST /users/bulk":       {body: `{"action":"ban","ids":["$id"],"reason":"spam"}`, status: 200},
	"POST /users/import":     {body: `{"email":"no address"}`, media: "application/x-ndjson", status: 202},
	"GET /jobs/{id}":         {status: 200},
	"GET /jobs/{id}/results": {status: 200},

	"GET /settings":                       {status: 200},
	"PATCH /settings":                     {body: `{"magic_link_enabled":true}`, status: 200},
	"POST /settings/test-mail":            {status: 200},
	"POST /settings/test-sms":             {status: 200},
	"POST /settings/test-provider/{name}": {status: 200},
	"GET /diagnostics":                    {status: 200},
	"GET /revocations":                    {status: 503}, // no feed reports revocations to this process
	"GET /audit-logs/{id}":                {status: 200},
	"GET /audit-logs/export":              {status: 200},
	"GET /stats":                          {status: 200},
	"GET /overview":                       {status: 200},
}

func TestEveryOperationHasAnExample(t *testing.T) {
	t.Parallel()
	for _, row := range admin.Table() {
		if _, ok := examples[row.Pattern]; !ok {
			t.Errorf("%s has no example: its rules are not tested", row.Pattern)
		}
	}
}

// asks reports whether an operation only answers a question, although it is a POST.
func asks(row admin.Row) bool {
	return row.Pattern == "POST /check" || row.Pattern == "POST /keys/verify"
}

// role is the role that the examples write; it exists, nobody has it, and it permits
// nothing.
const role = "writer"

var reasonIn = regexp.MustCompile(`"reason":"[^"]*"`)

// try sends the example of an operation on a target.
func (o *office) try(who *authtest.SignedIn, row admin.Row, target *authtest.SignedIn, headers ...string) *answer {
	o.t.Helper()
	e := examples[row.Pattern]
	id := target.User.ID
	switch {
	case strings.Contains(row.Pattern, "/sessions/{id}"):
		id = target.SessionID
	case strings.Contains(row.Pattern, "/keys/{id}"):
		id = o.deploy
	}
	if e.prepare != nil {
		e.prepare(o, target)
	}
	if strings.Contains(row.Pattern, "/audit-logs/{id}") {
		id = o.audit()[0].ID
	}
	if strings.Contains(row.Pattern, "/impersonations/{id}") {
		id = o.acted(target)
	}
	if strings.Contains(row.Pattern, "/jobs/{id}") {
		id = o.aJob()
	}
	if e.media != "" {
		headers = append(headers, "Content-Type: "+e.media)
	}
	if invited := o.invited(row, target); invited != "" {
		id = invited
	}
	pattern := strings.NewReplacer("{id}", id, "{role}", role, "{factor}", target.User.ID, "{identity}", target.User.ID, "{name}", theProvider, "$id", target.User.ID).Replace(row.Pattern + e.query)
	body := strings.NewReplacer("$id", target.User.ID, "$email", target.User.Email).Replace(e.body)
	if o.alter != nil {
		pattern, body, headers = o.alter(pattern, body, headers)
	}
	if o.because != "" && !row.Reads && e.media == "" {
		if !reasonIn.MatchString(body) {
			body = strings.Replace(strings.Replace(cmp.Or(body, "{}"), "{", `{"reason":"",`, 1), `,}`, `}`, 1)
		}
		body = reasonIn.ReplaceAllString(body, `"reason":"`+o.because+`"`)
	}
	return o.do(who, pattern, body, headers...)
}

// invited creates the target of an operation's example, unless it exists, and returns its
// id; "" where the target is the account or a session.
func (o *office) invited(row admin.Row, target *authtest.SignedIn) string {
	o.t.Helper()
	if strings.Contains(row.Pattern, "/messages/{id}") {
		return o.failedMessage(target.User)
	}
	if !strings.Contains(row.Pattern, "/invitations/{id}") {
		return ""
	}
	list, err := o.adm.Invitations(o.t.Context(), admin.System("test").Accepting(), admin.InvitationsParams{Limit: 200})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, i := range list.Invitations {
		if i.Email == target.User.Email {
			return i.ID
		}
	}
	i, err := o.adm.Invite(o.t.Context(), admin.System("test").Accepting(), admin.InviteParams{Email: target.User.Email})
	if err != nil {
		o.t.Fatal(err)
	}
	o.Clock.Advance(time.Minute) // the gap between two messages
	return i.ID
}

// newScene returns an office with a role to write and a user to act on.
func newScene(t *testing.T, store auth.Store, permissions ...string) (*office, *authtest.SignedIn) {
	o := newOffice(t, store)
	return o, o.fill(permissions...)
}

// fill creates the data of the examples, and a user to act on.
func (o *office) fill(permissions ...string) *authtest.SignedIn {
	o.t.Helper()
	o.permit(role)
	o.newDeploy()
	return o.LoginAs(o.t, "target@example.com", authtest.Permissions(permissions...), authtest.AAL2())
}

// all returns every permission except those named.
func allBut(t *testing.T, o *office, but ...string) []string {
	t.Helper()
	list, err := o.adm.Permissions(t.Context(), admin.System("test").Accepting())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		if !slices.Contains(but, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Each rule, over every operation.
func TestRules(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		person := o.LoginAs(t, "person@example.com", authtest.AAL2())
		noFactor := o.LoginAs(t, "nofactor@example.com", authtest.Roles(auth.RoleOwner))
		for _, row := range admin.Table() {
			t.Run(row.Pattern, func(t *testing.T) {
				o.do(nil, strings.NewReplacer("{id}", target.User.ID, "{role}", role, "{name}", theProvider).Replace(row.Pattern), "").want(401)
				o.try(person, row, target).want(403, auth.CodeNotAdmin)
				o.try(noFactor, row, target).want(403, auth.CodeInsufficientAAL)
				if row.Permission != "" {
					lacking := o.operator("lacks-"+strings.ReplaceAll(row.Permission, ".", "-")+"@example.com", allBut(t, o, row.Permission)...)
					a := o.try(lacking, row, target).want(403, auth.CodeMissingPermission)
					if d, _ := a.body["details"].(map[string]any); d["permission"] != row.Permission {
						t.Errorf("the refusal names %v", a.body)
					}
				}
				if row.Targets {
					equal := o.operator("just-"+strings.ReplaceAll(row.Permission, ".", "-")+"@example.com", row.Permission)
					o.try(equal, row, owner).want(403, auth.CodeTargetStronger)
					if !row.Self {
						o.try(owner, row, owner).want(403, auth.CodeTargetStronger)
					}
				}
			})
		}
	})
}

// Operations that need authentication of the last 15 minutes refuse an older one.
func TestStepUp(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.later(o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2()))
		asked := 0
		for _, row := range admin.Table() {
			if row.StepUp {
				asked++
				o.try(owner, row, target).want(403, auth.CodeReauthNeeded)
			}
		}
		if asked < 3 {
			t.Errorf("%d operations ask for a fresh proof", asked)
		}
	})
}

// Every permitted operation is done, and has exactly one row in the audit log, with the
// names of actor and target; operations that only read have none.
func TestEveryOperationIsRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.hasPhone(owner, "+4930123456")
		for _, row := range admin.Table() {
			t.Run(row.Pattern, func(t *testing.T) {
				o.permit(role)
				email := strings.NewReplacer(" ", "-", "/", "", "{", "", "}", "").Replace(strings.ToLower(row.Pattern)) + "@example.com"
				target := o.LoginAs(t, email)
				o.newDeploy()
				o.aJob()
				o.invited(row, target)
				o.changeable(row, target)
				before := len(o.audit())
				o.try(owner, row, target).want(examples[row.Pattern].status)
				rows := o.audit()
				rows = rows[:len(rows)-before]
				if row.Reads || asks(row) {
					if len(rows) != 0 {
						t.Fatalf("%d rows", len(rows))
					}
					return
				}
				if len(rows) != 1 {
					t.Fatalf("%d rows", len(rows))
				}
				r := rows[0].Record
				about := email
				if strings.HasSuffix(row.Pattern, "/anonymize") {
					about = target.User.ID
				}
				switch {
				case strings.Contains(row.Pattern, " /roles/"):
					about = role
				case strings.Contains(row.Pattern, " /keys"):
					about = "deploy"
				case row.Pattern == "POST /roles":
					about = "r-" + target.User.ID
				case row.Pattern == "POST /users/import":
					about = r.Target // the job
				case row.Pattern == "POST /users":
					about = target.User.ID + "@new.example.com"
				case row.Pattern == "GET /audit-logs/export", row.Pattern == "GET /users/export":
					about = ""
				}
				if what := settingsTargets[row.Pattern]; what != "" {
					about = what
				}
				if r.Actor != "owner@example.com" || r.Target != about || r.RequestID == "" || r.Denied || rows[0].Actor.ID != owner.User.ID {
					t.Errorf("recorded %+v by %+v", r, rows[0].Actor)
				}
			})
		}
	})
}

// withoutRevision are operations on an account that do not change it.
var withoutRevision = []string{"POST /users/bulk", "POST /users/import", "POST /links", "POST /messages/{id}/retry", "POST /users/{id}/send", "GET /users/{id}/export"}

// A request with an old revision changes nothing.
func TestStaleRevision(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for _, row := range admin.Table() {
			method, _, _ := strings.Cut(row.Pattern, " ")
			always := slices.Contains([]string{"PATCH", "PUT", "DELETE"}, method)
			if !always && (row.Reads || strings.Contains(row.Pattern, "sessions") || strings.Contains(row.Pattern, "/impersonations") || strings.HasSuffix(row.Pattern, "/export") || strings.HasPrefix(row.Pattern, "POST /settings/") || row.Pattern == "POST /users" || row.Pattern == "POST /keys" || strings.Contains(row.Pattern, "/invitations") || slices.Contains(withoutRevision, row.Pattern) || asks(row)) {
				continue
			}
			done := func() (n int) { // without the events of the setup
				for _, e := range o.audit() {
					if e.Record != nil && e.Record.Operation == row.Pattern {
						n++
					}
				}
				return n
			}
			before := done()
			o.try(owner, row, target, `If-Match: "4711"`).want(412, auth.CodePreconditionFailed)
			if n := done() - before; n != 0 {
				t.Errorf("%s: %d rows", row.Pattern, n)
			}
		}
	})
}

// Every operation that takes a reason takes one of 500 bytes at most.
func TestReasonsAreBounded(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		took := 0
		for i, row := range admin.Table() {
			if row.Reads || row.Secret || strings.HasPrefix(row.Pattern, "GET ") {
				continue
			}
			given := func(n int) (a *answer, reason string) {
				o.newDeploy()
				target := o.LoginAs(t, fmt.Sprintf("target%d-%d@example.com", i, n), authtest.AAL2())
				o.permit(role)
				o.changeable(row, target)
				o.because = strings.Repeat("x", n)
				defer func() { o.because = "" }()
				a = o.try(owner, row, target)
				for _, e := range o.audit() {
					if e.Record != nil && e.Record.Operation == row.Pattern && strings.Trim(e.Reason, "x") == "" && len(e.Reason) == n {
						return a, e.Reason
					}
				}
				return a, ""
			}
			if _, reason := given(500); reason == "" {
				continue
			}
			took++
			if a, _ := given(501); a.status != 422 {
				t.Errorf("%s: %d %.200s", row.Pattern, a.status, a.text)
			}
		}
		if took < 15 {
			t.Errorf("%d operations took a reason", took)
		}
	})
}
