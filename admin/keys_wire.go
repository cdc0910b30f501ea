package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/authmount/auth/store"
)

var keyEndpoints = []endpoint{
	op(opListKeys, (*Admin).ListKeys),
	op(opCreateKey, (*Admin).createKey),
	op(opUpdateKey, (*Admin).updateKey),
	op(opRotateKey, (*Admin).rotateKey),
	op(opVerifyKey, (*Admin).VerifyKey),
	op(opRevokeKey, silent((*Admin).RevokeKey)),
}

// keyView is an API key on the wire.
type keyView struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Kind          string     `json:"kind"` // "secret", "public"
	Environment   string     `json:"environment"`
	Scopes        []string   `json:"scopes"`
	CIDRs         []string   `json:"cidrs"`
	CreatedBy     *string    `json:"created_by"`
	Adopted       bool       `json:"adopted"`
	HourlyLimit   int        `json:"hourly_limit"`
	Revision      int64      `json:"revision"`
	Status        string     `json:"status"` // "live", "expired", "revoked"
	CreatedAt     time.Time  `json:"created_at"`
	ExpiresAt     *time.Time `json:"expires_at"`
	RevokedAt     *time.Time `json:"revoked_at"`
	LastUsedAt    *time.Time `json:"last_used_at"`
	RotatedAt     *time.Time `json:"rotated_at"`
	PreviousUntil *time.Time `json:"previous_until"`
}

// Kinds of keys on the wire.
const (
	kindSecret = "secret"
	kindPublic = "public"
)

func (m *Admin) viewKey(k store.APIKey) keyView {
	v := keyView{
		ID: k.ID, Name: k.Name, Kind: kindSecret, Environment: k.Environment, Scopes: nonNil(k.Scopes), CIDRs: nonNil(k.Networks),
		CreatedBy: optional(k.CreatedBy), Adopted: k.Adopted, HourlyLimit: k.HourlyLimit, Revision: k.Revision, Status: "live", CreatedAt: k.CreatedAt,
		ExpiresAt: orNever(k.ExpiresAt), RevokedAt: orNever(k.RevokedAt), LastUsedAt: orNever(k.LastUsedAt), RotatedAt: orNever(k.RotatedAt), PreviousUntil: orNever(k.PreviousUntil),
	}
	if k.Public {
		v.Kind = kindPublic
	}
	switch {
	case !k.RevokedAt.IsZero():
		v.Status = "revoked"
	case !k.Live(m.kit.Now()):
		v.Status = "expired"
	}
	return v
}

func orNever(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// reply returns a key with its text, only this once.
func (k NewKey) reply(m *Admin) reply {
	return reply{revision: &k.Revision, body: struct {
		keyView
		Key string `json:"key"`
	}{m.viewKey(k.APIKey), k.Secret.Reveal()}}
}

func (p KeyPage) reply(m *Admin) reply {
	out := struct {
		Keys       []keyView `json:"keys"`
		NextCursor *string   `json:"next_cursor"`
	}{[]keyView{}, p.NextCursor}
	for _, k := range p.Keys {
		out.Keys = append(out.Keys, m.viewKey(k))
	}
	return reply{body: out}
}

// createKeyBody is CreateKeyParams on the wire.
type createKeyBody struct {
	Name        string    `json:"name"`
	Kind        *string   `json:"kind"`
	Environment string    `json:"environment"`
	Scopes      []string  `json:"scopes"`
	CIDRs       []string  `json:"cidrs"`
	ExpiresAt   time.Time `json:"expires_at"`
	HourlyLimit int       `json:"hourly_limit"`
}

func (m *Admin) createKey(ctx context.Context, who Actor, p createKeyBody) (NewKey, error) {
	if p.Kind != nil && *p.Kind != kindSecret && *p.Kind != kindPublic {
		return NewKey{}, m.kit.Invalid("kind", "has to be secret or public")
	}
	return m.CreateKey(ctx, who, CreateKeyParams{Name: p.Name, Public: p.Kind != nil && *p.Kind == kindPublic, Environment: p.Environment, Scopes: p.Scopes, Networks: p.CIDRs, ExpiresAt: p.ExpiresAt, HourlyLimit: p.HourlyLimit})
}

// nullable is a time in a body that null removes.
type nullable struct{ time *time.Time }

func (n *nullable) UnmarshalJSON(b []byte) error {
	n.time = &time.Time{}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return json.Unmarshal(b, n.time)
}

// updateKeyBody distinguishes null, which removes the expiry of a key, from an absent
// member.
type updateKeyBody struct {
	ID        string    `path:"id"`
	Name      *string   `json:"name"`
	Scopes    *[]string `json:"scopes"`
	CIDRs     *[]string `json:"cidrs"`
	ExpiresAt nullable  `json:"expires_at"`
	Adopted   *bool     `json:"adopted"`
	Revision  *int64    `header:"If-Match"`

	HourlyLimit *int `json:"hourly_limit"`
}

// keyAnswer is a key on the wire.
type keyAnswer struct{ store.APIKey }

func (k keyAnswer) reply(m *Admin) reply {
	return reply{revision: &k.Revision, body: m.viewKey(k.APIKey)}
}

func (m *Admin) updateKey(ctx context.Context, who Actor, p updateKeyBody) (keyAnswer, error) {
	k, err := m.UpdateKey(ctx, who, UpdateKeyParams{ID: p.ID, Name: p.Name, Scopes: p.Scopes, Networks: p.CIDRs, ExpiresAt: p.ExpiresAt.time, Adopted: p.Adopted, HourlyLimit: p.HourlyLimit, Revision: p.Revision})
	return keyAnswer{k}, err
}

// rotateKeyBody is RotateKeyParams on the wire, with the overlap in seconds.
type rotateKeyBody struct {
	ID       string `path:"id"`
	Overlap  int    `json:"overlap"`
	Revision *int64 `header:"If-Match"`
}

func (m *Admin) rotateKey(ctx context.Context, who Actor, p rotateKeyBody) (NewKey, error) {
	if p.Overlap < 0 || p.Overlap > int(maxOverlap/time.Second) {
		p.Overlap = -1 // it is rejected, and does not overflow
	}
	return m.RotateKey(ctx, who, RotateKeyParams{ID: p.ID, Overlap: time.Duration(p.Overlap) * time.Second, Revision: p.Revision})
}
