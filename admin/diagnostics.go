package admin

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var opDiagnostics = operation{strict: true, pattern: "GET /diagnostics", permission: PermSettingsRead}

// Diagnosis is the state of the service, as one instance sees it.
type Diagnosis struct {
	host.Diagnosis

	APIKeys []KeyAge `json:"api_keys"` // live secret keys of the store, the oldest texts first, at most MaxKeyAges

	// OpenRoles are the names that HasRole was asked for in this process, that hold no
	// permission, and that are not privileged.
	OpenRoles []OpenRole `json:"open_roles"`
}

// OpenRole is the name of a role that application code asks for and that protects nobody.
type OpenRole struct {
	Name        string `json:"name"`
	Consequence string `json:"consequence"` // a sentence for people
}

// openRole is the consequence of an open role.
const openRole = "Every operator who assigns roles can give this role, and weaker operators can act as its bearers, because its name is not privileged (WithPrivilegedRoles)."

// KeyAge is the age of an API key's text.
type KeyAge struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Since      time.Time  `json:"since"` // when the key was created or last rotated
	LastUsedAt *time.Time `json:"last_used_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Ageing     bool       `json:"ageing"` // it is older than KeyAgeing
}

// Limits of key ages.
const (
	KeyAgeing  = 365 * 24 * time.Hour
	MaxKeyAges = 50

	keysLooked = 2000 // how many keys are read at most: the newest
)

// Diagnostics returns the state of the service, as this instance sees it.
func (m *Admin) Diagnostics(ctx context.Context, who Actor) (Diagnosis, error) {
	a, err := m.reader(ctx, who, opDiagnostics)
	if err != nil {
		return Diagnosis{}, err
	}
	health, err := m.kit.Diagnose(ctx)
	if err != nil {
		return Diagnosis{}, err
	}
	ages, err := m.keyAges(ctx)
	return Diagnosis{health, ages[:min(len(ages), MaxKeyAges)], m.openRoles(a.roles)}, err
}

func (m *Admin) openRoles(t store.RoleTable) []OpenRole {
	list := []OpenRole{}
	for _, name := range m.kit.RolesAskedFor() {
		if len(m.strengthIn(t, []string{name})) == 0 {
			list = append(list, OpenRole{name, openRole})
		}
	}
	return list
}

// keyAges returns the ages of the live secret keys, the oldest first.
func (m *Admin) keyAges(ctx context.Context) ([]KeyAge, error) {
	now := m.kit.Now()
	q := store.KeyQuery{Public: ptr(false), LiveAt: now, Limit: maxPage}
	ages := []KeyAge{}
	for len(ages) < keysLooked {
		list, err := m.project.Keys(ctx, q)
		if err != nil {
			return nil, m.kit.StoreError(err)
		}
		for _, k := range list {
			ages = append(ages, KeyAge{k.ID, k.Name, k.Since(), orNever(k.LastUsedAt), orNever(k.ExpiresAt), now.Sub(k.Since()) > KeyAgeing})
		}
		if len(list) < q.Limit {
			break
		}
		q.After = list[len(list)-1].Cursor()
	}
	slices.SortStableFunc(ages, func(a, b KeyAge) int { return a.Since.Compare(b.Since) })
	return ages, nil
}
