package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

var keyEndpoints = []endpoint{
	{opListKeys, (*Admin).handleListKeys},
	{opCreateKey, (*Admin).handleCreateKey},
	{opUpdateKey, (*Admin).handleUpdateKey},
	{opRotateKey, (*Admin).handleRotateKey},
	{opRevokeKey, (*Admin).handleRevokeKey},
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
		ID: k.ID, Name: k.Name, Kind: kindSecret, Environment: k.Environment, Scopes: orNone(k.Scopes), CIDRs: orNone(k.Networks),
		CreatedBy: optional(k.CreatedBy), Adopted: k.Adopted, Revision: k.Revision, Status: "live", CreatedAt: k.CreatedAt,
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

// writeKey writes a key with its revision as ETag.
func (m *Admin) writeKey(w http.ResponseWriter, k store.APIKey, v any, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(k.Revision, 10)))
	return m.kit.WriteJSON(w, http.StatusOK, v)
}

// writeNewKey writes a key with its text, this once.
func (m *Admin) writeNewKey(w http.ResponseWriter, k NewKey, err error) error {
	return m.writeKey(w, k.APIKey, struct {
		keyView
		Key string `json:"key"`
	}{m.viewKey(k.APIKey), k.Secret.Reveal()}, err)
}

func (m *Admin) handleListKeys(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	q := store.KeyQuery{Limit: v.limit()}
	switch v.text("kind") {
	case "":
	case kindSecret:
		q.Public = ptr(false)
	case kindPublic:
		q.Public = ptr(true)
	default:
		v.fault("kind", "has to be secret or public")
	}
	switch v.text("status") {
	case "":
	case "live":
		q.LiveAt = m.kit.Now()
	default:
		v.fault("status", "has to be live")
	}
	if c := v.text("cursor"); c != "" {
		q.After = &store.KeyCursor{}
		if err := m.readCursor(c, q.After); err != nil {
			return err
		}
		if uuid.Validate(q.After.ID) != nil {
			v.fault("cursor", "is none of this list")
		}
	}
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.ListKeys(r.Context(), who, q)
	if err != nil {
		return err
	}
	out := struct {
		Keys       []keyView `json:"keys"`
		NextCursor *string   `json:"next_cursor"`
	}{Keys: []keyView{}}
	for _, k := range page.Keys {
		out.Keys = append(out.Keys, m.viewKey(k))
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(page.Next))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleCreateKey(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Name        string     `json:"name"`
		Kind        *string    `json:"kind"`
		Environment string     `json:"environment"`
		Scopes      []string   `json:"scopes"`
		CIDRs       []string   `json:"cidrs"`
		ExpiresAt   *time.Time `json:"expires_at"`
	}
	if err := m.kit.Decode(r, &p); err != nil {
		return err
	}
	if p.Kind != nil && *p.Kind != kindSecret && *p.Kind != kindPublic {
		return m.kit.Invalid("kind", "has to be secret or public")
	}
	c := CreateKeyParams{Name: p.Name, Public: p.Kind != nil && *p.Kind == kindPublic, Environment: p.Environment, Scopes: p.Scopes, Networks: p.CIDRs}
	if p.ExpiresAt != nil {
		c.ExpiresAt = *p.ExpiresAt
	}
	k, err := m.CreateKey(r.Context(), who, c)
	return m.writeNewKey(w, k, err)
}

// nullable is a time in a body that null takes away.
type nullable struct{ time *time.Time }

func (n *nullable) UnmarshalJSON(b []byte) error {
	n.time = &time.Time{}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return json.Unmarshal(b, n.time)
}

func (m *Admin) handleUpdateKey(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Name      *string   `json:"name"`
		Scopes    *[]string `json:"scopes"`
		CIDRs     *[]string `json:"cidrs"`
		ExpiresAt nullable  `json:"expires_at"`
		Adopted   *bool     `json:"adopted"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	k, err := m.UpdateKey(r.Context(), who, UpdateKeyParams{
		ID: r.PathValue("id"), Name: p.Name, Scopes: p.Scopes, Networks: p.CIDRs, ExpiresAt: p.ExpiresAt.time, Adopted: p.Adopted, Revision: rev,
	})
	return m.writeKey(w, k, m.viewKey(k), err)
}

func (m *Admin) handleRotateKey(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Overlap int `json:"overlap"` // seconds
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.DecodeOptional(r, &p)
	}
	if err != nil {
		return err
	}
	if p.Overlap < 0 || p.Overlap > int(maxOverlap/time.Second) {
		p.Overlap = -1 // which is refused, and does not overflow
	}
	k, err := m.RotateKey(r.Context(), who, RotateKeyParams{ID: r.PathValue("id"), Overlap: time.Duration(p.Overlap) * time.Second, Revision: rev})
	return m.writeNewKey(w, k, err)
}

func (m *Admin) handleRevokeKey(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, rev, err := m.why(r)
	if err == nil {
		err = m.RevokeKey(r.Context(), who, RevokeKeyParams{ID: r.PathValue("id"), Reason: p.Reason, Revision: rev})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
