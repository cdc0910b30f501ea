package admin

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/authmount/auth"
)

// endpoints returns the table of all operations.
func endpoints() []endpoint {
	return slices.Concat(
		meEndpoints,
		userEndpoints,
		roleEndpoints,
		keyEndpoints,
		sessionEndpoints,
		impersonationEndpoints,
		auditEndpoints,
		statsEndpoints,
		settingsEndpoints,
		revocationEndpoints,
		invitationEndpoints,
		linkEndpoints,
		messageEndpoints,
		personEndpoints,
		jobEndpoints,
	)
}

// operations returns the rules of all operations, by their patterns.
var operations = sync.OnceValue(func() map[string]operation {
	all := map[string]operation{}
	for _, e := range endpoints() {
		all[e.op.pattern] = e.op
	}
	return all
})

// failures returns the error codes of an operation, in addition to those of its access
// and its body.
func (o operation) failures() []auth.Code {
	list := []auth.Code{auth.CodeNotAdmin, auth.CodeInsufficientAAL, auth.CodeValidationFailed}
	if o.permission != "" {
		list = append(list, auth.CodeMissingPermission)
	}
	if o.stepUp {
		list = append(list, auth.CodeReauthNeeded)
	}
	if o.spends && !slices.Contains(o.fails, auth.CodeRateLimited) {
		list = append(list, auth.CodeRateLimited)
	}
	if o.against != anybody {
		list = append(list, auth.CodeTargetStronger, auth.CodeUserNotFound)
	}
	if o.secret {
		list = append(list, auth.CodeIdempotencyReplayed)
	}
	if o.revisable() && !slices.Contains(o.fails, auth.CodePreconditionFailed) {
		list = append(list, auth.CodePreconditionFailed)
	}
	return append(list, o.fails...)
}

// checkRequest rejects parts of a request that the operation would ignore: query parameters of
// an operation with a body, because the client might rely on them; and a revision of a
// target without one, because it never matches (RFC 9110, section 13.1.1).
func (m *Admin) checkRequest(op operation, r *http.Request) error {
	if err := m.checkURL(op, r); err != nil {
		return err
	}
	if slices.Contains([]string{http.MethodPost, http.MethodPatch, http.MethodPut}, r.Method) && !op.streams {
		if err := m.query(r.URL.Query(), &none{}); err != nil {
			return err
		}
	}
	if given := r.Header.Get("If-Match"); given != "" && given != "*" && op.revisable() && !slices.Contains(op.fails, auth.CodePreconditionFailed) {
		return m.fail(auth.CodePreconditionFailed, nil)
	}
	return nil
}

// checkURL rejects text in the URL that no store can keep, and normalises ids.
func (m *Admin) checkURL(op operation, r *http.Request) error {
	for _, found := range wildcard.FindAllStringSubmatch(op.pattern, -1) {
		name := found[1]
		value, err := m.normalID(name, r.PathValue(name))
		if err != nil {
			return err
		}
		r.SetPathValue(name, value)
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return m.kit.Invalid("query", "is malformed")
	}
	for name, values := range q {
		if !isText(name + strings.Join(values, "")) {
			return m.kit.Invalid("query", "has characters that cannot be stored")
		}
	}
	return nil
}

// normalID returns the normal form of an id, which may be written in more than one way,
// and any other text unchanged. Errors: CodeValidationFailed for text that no store can
// keep.
func (m *Admin) normalID(name, text string) (string, error) {
	if !isText(text) {
		return "", m.kit.Invalid(name, "has characters that cannot be stored")
	}
	if id, err := uuid.Parse(text); err == nil {
		return id.String(), nil
	}
	return text, nil
}

var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// isText reports whether every store can keep a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// actorOf returns the actor of an accepted request.
func (m *Admin) actorOf(r *http.Request) (Actor, error) {
	if text, ok := m.kit.RequestKey(r.Context()); ok {
		return Key(text), nil
	}
	if m.authenticate != nil {
		return m.identifyExternal(r)
	}
	s, u := m.kit.Current(r.Context())
	return User(auth.Caller{UserID: u.ID, SessionID: s.ID}), nil
}

// userView is an account in responses of the admin API.
type userView struct {
	auth.UserView

	Revision int64  `json:"revision"`
	Status   string `json:"status"` // "active", "banned", "unconfirmed"
}

func (m *Admin) view(u auth.User) userView {
	return userView{UserView: auth.ViewOf(u), Revision: u.Revision, Status: m.status(&u)}
}

// status returns the state of an account in a word.
func (m *Admin) status(u *auth.User) string {
	switch {
	case u.Banned(m.kit.Now()):
		return "banned"
	case u.Unverified():
		return "unconfirmed"
	}
	return "active"
}

var (
	opMe        = operation{pattern: "GET /me"}
	meEndpoints = []endpoint{op(opMe, bare((*Admin).me))}
)

// meView is the actor on the wire.
type meView struct {
	Actor         actorView `json:"actor"`
	User          *userView `json:"user"`
	Permissions   []string  `json:"permissions"`
	Impersonating bool      `json:"impersonating"`
}

func (m *Admin) me(ctx context.Context, who Actor) (meView, error) {
	a, err := m.reader(ctx, who, opMe)
	if err != nil {
		return meView{}, err
	}
	v := meView{Actor: a.view(), Permissions: withoutNames(a.permissions)}
	if a.user != nil {
		v.User = ptr(m.view(*a.user))
	}
	return v, nil
}
