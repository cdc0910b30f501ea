package admin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/apikey"
	shown "github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
)

var (
	opListKeys  = operation{pattern: "GET /keys", permission: PermKeysRead}
	opCreateKey = operation{pattern: "POST /keys", permission: PermKeysWrite, stepUp: true, secret: true, fails: []auth.Code{auth.CodeTargetStronger}}
	opUpdateKey = operation{pattern: "PATCH /keys/{id}", permission: PermKeysWrite, stepUp: true, fails: writingKeys}
	opRotateKey = operation{bodyless: true, pattern: "POST /keys/{id}/rotate", permission: PermKeysWrite, stepUp: true, secret: true, fails: writingKeys}
	opVerifyKey = operation{pattern: "POST /keys/verify", permission: PermKeysVerify}
	opRevokeKey = operation{bodyless: true, pattern: "DELETE /keys/{id}", permission: PermKeysWrite, stepUp: true, fails: writingKeys}

	writingKeys = []auth.Code{auth.CodeTargetStronger, auth.CodePreconditionFailed}
)

// Limits of keys.
const (
	maxKeyName  = 100 // bytes
	maxNetworks = 100

	maxHourlyLimit = 100_000
	maxOverlap     = 30 * 24 * time.Hour

	defaultEnvironment = "live"
)

// ListKeysParams pick API keys.
type ListKeysParams struct {
	Kind   string `query:"kind"`   // "secret", "public"
	Status string `query:"status"` // "live"
	Limit  int    `query:"limit"`  // up to 200; 0: 50
	Cursor string `query:"cursor"` // KeyPage.NextCursor of the page before
}

// KeyPage is a page of API keys.
type KeyPage struct {
	Keys       []store.APIKey
	NextCursor *string // of the page after; nil: this was the last
}

// ListKeys lists API keys, newest first, including expired and revoked ones. Errors:
// CodeValidationFailed, and those of every operation.
func (m *Admin) ListKeys(ctx context.Context, who Actor, p ListKeysParams) (KeyPage, error) {
	q := store.KeyQuery{Limit: pageSize(p.Limit)}
	switch p.Kind {
	case "":
	case kindSecret, kindPublic:
		q.Public = ptr(p.Kind == kindPublic)
	default:
		return KeyPage{}, m.kit.Invalid("kind", "has to be secret or public")
	}
	switch p.Status {
	case "":
	case "live":
		q.LiveAt = m.kit.Now()
	default:
		return KeyPage{}, m.kit.Invalid("status", "has to be live")
	}
	var err error
	if q.After, err = readCursor[store.KeyCursor](m, p.Cursor); err != nil {
		return KeyPage{}, err
	}
	if q.After != nil && uuid.Validate(q.After.ID) != nil {
		return KeyPage{}, m.kit.Invalid("cursor", "does not belong to this list")
	}
	if _, err := m.reader(ctx, who, opListKeys); err != nil {
		return KeyPage{}, err
	}
	list, err := m.project.Keys(ctx, q)
	if err != nil {
		return KeyPage{}, m.kit.StoreError(err)
	}
	page := KeyPage{Keys: list}
	if len(list) == q.Limit {
		page.NextCursor = cursorOf(list[len(list)-1].Cursor())
	}
	return page, nil
}

// NewKey is an API key with its text, which is not stored and never shown again.
type NewKey struct {
	store.APIKey
	Secret Secret
}

// CreateKeyParams describe a new API key.
type CreateKeyParams struct {
	Name        string   // for people; required
	Public      bool     // it names an application, and has no scopes
	Environment string   // up to 16 lower-case letters and digits; "live" if empty
	Scopes      []string // permissions, patterns of them, and roles that it may give and take, "role/editor"; required of secret keys
	Networks    []string // CIDR; none: from anywhere
	ExpiresAt   time.Time
	HourlyLimit int // accounts that it may ban, delete, anonymise, sign out, mail, or create with a mail in an hour, up to 100,000; 0: 50
}

// CreateKey creates an API key. Its scopes are permissions that the actor has and names of
// roles that the actor may give, and count only while the actor has these permissions: a key ends with a ban or the deletion of its creator,
// unless an owner adopts it. A key belongs to the service itself if code of the
// application ([System]) creates it, or a person whom only the application knows
// ([External], who needs "*" for it). Errors: CodeValidationFailed, CodeTargetStronger.
func (m *Admin) CreateKey(ctx context.Context, who Actor, p CreateKeyParams) (NewKey, error) {
	k := store.APIKey{Public: p.Public, Environment: p.Environment, ExpiresAt: p.ExpiresAt}
	if k.Environment == "" {
		k.Environment = defaultEnvironment
	}
	u := UpdateKeyParams{Name: &p.Name, Scopes: &p.Scopes, Networks: &p.Networks, HourlyLimit: &p.HourlyLimit}
	if !p.ExpiresAt.IsZero() {
		u.ExpiresAt = &p.ExpiresAt
	}
	if err := m.clean(&k, u); err != nil {
		return NewKey{}, err
	}
	return carryOut(ctx, m, who, opCreateKey, "", auth.EventKeyCreated, func(t *attempt) (NewKey, error) {
		if err := m.mayScope(t, k.Scopes, nil); err != nil {
			return NewKey{}, err
		}
		if len(k.Scopes) > 0 && t.untraceable() {
			return NewKey{}, m.stronger()
		}
		created := NewKey{APIKey: k}
		created.ID = m.kit.NewID()
		if t.user != nil {
			created.CreatedBy = t.user.ID
		}
		t.record.Target = k.Name
		t.changed("scopes", nil, k.Scopes)
		return created, m.putKey(ctx, t, &created, nil)
	})
}

// UpdateKeyParams change an API key; nil keeps a field.
type UpdateKeyParams struct {
	ID        string
	Name      *string
	Scopes    *[]string
	Networks  *[]string
	ExpiresAt *time.Time // zero: never
	Adopted   *bool      // the service owns the key, independent of its creator; only for owners

	HourlyLimit *int // as of CreateKeyParams

	Revision *int64 // of the key that the caller saw; nil: any
}

// UpdateKey changes an API key. The actor has to hold its former and its new scopes, and
// has to be an owner if the service owns the key, before or after, or to raise the hourly
// limit of somebody else's key. Errors:
// CodeValidationFailed, CodeNotFound if the key does not exist or was revoked,
// CodeTargetStronger, CodePreconditionFailed.
func (m *Admin) UpdateKey(ctx context.Context, who Actor, p UpdateKeyParams) (store.APIKey, error) {
	if err := m.clean(&store.APIKey{}, p); err != nil { // an actor without the permission learns only about syntax errors
		return store.APIKey{}, err
	}
	return carryOut(ctx, m, who, opUpdateKey, "", auth.EventKeyChanged, func(t *attempt) (store.APIKey, error) {
		before, err := m.keyOf(ctx, t, p.ID, p.Revision)
		if err != nil {
			return store.APIKey{}, err
		}
		k := before
		if err := m.clean(&k, p); err != nil {
			return store.APIKey{}, err
		}
		if p.Adopted != nil {
			k.Adopted = *p.Adopted
		}
		raises := hourlyLimit(k) > hourlyLimit(before) && !t.is(before.CreatedBy)
		if err := m.mayEdit(t, before, before.OfService() || k.OfService() || raises); err != nil {
			return store.APIKey{}, err
		}
		if err := m.mayScope(t, k.Scopes, before.Scopes); err != nil {
			return store.APIKey{}, err
		}
		for _, f := range []struct {
			name          string
			before, after any
			same          bool
		}{
			{"name", before.Name, k.Name, before.Name == k.Name},
			{"scopes", nonNil(before.Scopes), nonNil(k.Scopes), slices.Equal(before.Scopes, k.Scopes)},
			{"cidrs", nonNil(before.Networks), nonNil(k.Networks), slices.Equal(before.Networks, k.Networks)},
			{"expires_at", timeOrNone(before.ExpiresAt), timeOrNone(k.ExpiresAt), before.ExpiresAt.Equal(k.ExpiresAt)},
			{"adopted", before.Adopted, k.Adopted, before.Adopted == k.Adopted},
			{"hourly_limit", before.HourlyLimit, k.HourlyLimit, before.HourlyLimit == k.HourlyLimit},
		} {
			if !f.same {
				t.changed(f.name, f.before, f.after)
			}
		}
		if t.unchanged(len(t.record.Changes) == 0) {
			return before, nil
		}
		return k, m.replaceKey(ctx, t, &k, before)
	})
}

// RotateKeyParams rotate an API key.
type RotateKeyParams struct {
	ID       string
	Overlap  time.Duration // for how long the former text stays valid: up to 30 days; 0: not at all
	Revision *int64        // of the key that the caller saw; nil: the present one
}

// RotateKey gives an API key a new text. The former text stays valid for the overlap, and
// any older one ends. The recipient of the text has to answer for the key, so only its
// creator or an owner may rotate it. Of two concurrent rotations one succeeds. Errors:
// CodeValidationFailed, CodeNotFound, CodeTargetStronger, CodePreconditionFailed.
func (m *Admin) RotateKey(ctx context.Context, who Actor, p RotateKeyParams) (NewKey, error) {
	if p.Overlap < 0 || p.Overlap > maxOverlap {
		return NewKey{}, m.kit.Invalid("overlap", fmt.Sprintf("has to be from 0 to %d seconds", int(maxOverlap/time.Second)))
	}
	return carryOut(ctx, m, who, opRotateKey, "", auth.EventKeyRotated, func(t *attempt) (NewKey, error) {
		before, err := m.keyOf(ctx, t, p.ID, p.Revision)
		if err != nil {
			return NewKey{}, err
		}
		if err := m.mayEdit(t, before, !t.is(before.CreatedBy) || before.OfService()); err != nil {
			return NewKey{}, err
		}
		p.Revision = &before.Revision // do not overwrite a concurrent rotation
		created := NewKey{APIKey: before}
		created.PreviousHash, created.PreviousUntil, created.RotatedAt = nil, time.Time{}, t.change.Now
		if p.Overlap > 0 {
			created.PreviousHash, created.PreviousUntil = before.Hash, t.change.Now.Add(p.Overlap)
			t.changed("previous_until", nil, created.PreviousUntil)
		}
		return created, m.putKey(ctx, t, &created, &before.Revision)
	})
}

// RevokeKeyParams revoke an API key.
type RevokeKeyParams struct {
	ID       string `path:"id"`
	Reason   string `json:"reason"`
	Revision *int64 `header:"If-Match"`
}

// RevokeKey revokes an API key permanently; the key stays in the list. A secret key ends
// at once, a public one within a second. Invitations and links that it created become
// invalid. Errors: CodeNotFound, CodeTargetStronger if the key has permissions of
// Authmount or privileged ones that the actor lacks, CodePreconditionFailed.
func (m *Admin) RevokeKey(ctx context.Context, who Actor, p RevokeKeyParams) error {
	_, err := carryOut(ctx, m, who, opRevokeKey, "", auth.EventKeyRevoked, func(t *attempt) (struct{}, error) {
		before, err := m.keyOf(ctx, t, p.ID, p.Revision)
		if err != nil {
			return struct{}{}, err
		}
		if !covers(t.permissions, m.permissions.managing(m.strengthOfScopes(t.roles, before.Scopes))) {
			return struct{}{}, m.stronger()
		}
		if err := m.setReason(t, p.Reason); err != nil {
			return struct{}{}, err
		}
		k := before
		k.RevokedAt = t.change.Now
		t.changed("revoked_at", nil, k.RevokedAt)
		return struct{}{}, m.replaceKey(ctx, t, &k, before)
	})
	return err
}

// keyOf reads the key of an operation. Errors: CodeNotFound, CodePreconditionFailed.
func (m *Admin) keyOf(ctx context.Context, t *attempt, id string, revision *int64) (store.APIKey, error) {
	k, err := m.project.Key(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return k, auth.Reject(auth.CodeNotFound, "There is no such key.")
	case err != nil:
		return k, m.kit.StoreError(err)
	}
	t.record.Target = k.Name
	switch {
	case !k.RevokedAt.IsZero():
		return k, auth.Reject(auth.CodeNotFound, "This key was revoked. Create a new one.")
	case revision != nil && *revision != k.Revision:
		return k, m.fail(auth.CodePreconditionFailed, nil)
	}
	return k, nil
}

// mayEdit checks whether the actor may change a key.
func (m *Admin) mayEdit(t *attempt, k store.APIKey, ownersOnly bool) error {
	if ownersOnly && !t.may(permAll) || !covers(t.permissions, m.strengthOfScopes(t.roles, k.Scopes)) {
		return m.stronger()
	}
	return nil
}

func (m *Admin) stronger() error {
	return auth.Reject(auth.CodeTargetStronger, "Only an owner or an operator with all permissions of this key can change it.")
}

// putKey gives a key a new text and stores it. It replaces the key at a revision, if
// there is one.
func (m *Admin) putKey(ctx context.Context, t *attempt, k *NewKey, revision *int64) error {
	text, err := apikey.New(apikey.Parts{Public: k.Public, Environment: k.Environment, ID: k.ID})
	if err != nil {
		return m.fail(auth.CodeInternal, err)
	}
	k.Hash = apikey.Hash(text)
	stored, err := m.project.PutKey(ctx, store.PutKey{Change: t.change, Key: k.APIKey, IfRevision: revision})
	if err != nil {
		return err
	}
	m.kit.ReloadKeys()
	k.APIKey, k.Secret = stored, Secret{&text}
	return nil
}

// replaceKey stores a key in place of the one that was read.
func (m *Admin) replaceKey(ctx context.Context, t *attempt, k *store.APIKey, before store.APIKey) error {
	stored, err := m.project.PutKey(ctx, store.PutKey{Change: t.change, Key: *k, IfRevision: &before.Revision})
	if err != nil {
		return err
	}
	m.kit.ReloadKeys()
	*k = stored
	return nil
}

// clean checks the parameters and writes them into a key in normal form. Errors:
// CodeValidationFailed.
func (m *Admin) clean(k *store.APIKey, p UpdateKeyParams) error {
	if p.Name != nil {
		k.Name = strings.TrimSpace(*p.Name)
		if k.Name == "" || len(k.Name) > maxKeyName || strings.ContainsFunc(k.Name, notShown) {
			return m.kit.Invalid("name", fmt.Sprintf("has to be a line of up to %d bytes", maxKeyName))
		}
	}
	if k.Environment != "" && !apikey.IsEnvironment(k.Environment) {
		return m.kit.Invalid("environment", "has to be up to 16 lower-case letters and digits, such as live or test")
	}
	if p.Scopes != nil {
		scopes := slices.Clone(*p.Scopes)
		slices.Sort(scopes)
		k.Scopes = nonNil(slices.Compact(scopes))
		if len(k.Scopes) > maxRolePermissions {
			return m.kit.Invalid("scopes", fmt.Sprintf("are more than %d", maxRolePermissions))
		}
		if problem, ok := m.checkScopes(k.Scopes); !ok {
			return m.kit.Invalid("scopes", problem)
		}
	}
	if k.Environment != "" && k.Public != (len(k.Scopes) == 0) {
		return m.kit.Invalid("scopes", "are only for secret keys")
	}
	if p.Networks != nil {
		if len(*p.Networks) > maxNetworks {
			return m.kit.Invalid("cidrs", fmt.Sprintf("are more than %d", maxNetworks))
		}
		k.Networks = []string{}
		for _, n := range *p.Networks {
			prefix, err := netip.ParsePrefix(n)
			if err != nil || prefix.Addr().Is4In6() {
				return m.kit.Invalid("cidrs", "have to be networks such as 192.0.2.0/24 or 2001:db8::/32")
			}
			k.Networks = append(k.Networks, prefix.Masked().String())
		}
	}
	if p.HourlyLimit != nil {
		if *p.HourlyLimit < 0 || *p.HourlyLimit > maxHourlyLimit {
			return m.kit.Invalid("hourly_limit", fmt.Sprintf("has to be at most %d; 0 is the default", maxHourlyLimit))
		}
		k.HourlyLimit = *p.HourlyLimit
	}
	if p.ExpiresAt != nil {
		k.ExpiresAt = p.ExpiresAt.UTC()
		if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(m.kit.Now()) {
			return m.kit.Invalid("expires_at", "has to be in the future")
		}
	}
	return nil
}

// notShown reports whether a character cannot be part of a line.
func notShown(r rune) bool { return r == '\ufffd' || r < ' ' || r == 0x7f || !shown.Rune(r) }

func timeOrNone(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}
