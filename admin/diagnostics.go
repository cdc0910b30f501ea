package admin

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var opDiagnostics = operation{strict: true, pattern: "GET /diagnostics", permission: PermSettingsRead}

// Diagnosis is how the service is doing, as one instance sees it.
type Diagnosis struct {
	host.Diagnosis

	APIKeys []KeyAge `json:"api_keys"` // secret keys of the store that are live, the oldest texts first, at most MaxKeyAges
}

// KeyAge is how old the text of an API key is.
type KeyAge struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Since      time.Time  `json:"since"` // when it was made, or rotated last
	LastUsedAt *time.Time `json:"last_used_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Ageing     bool       `json:"ageing"` // it is older than KeyAgeing
}

// What is said of keys that get old.
const (
	KeyAgeing  = 365 * 24 * time.Hour
	MaxKeyAges = 50

	keysLooked = 2000 // how many keys are looked at, at most: the newest
)

// Diagnostics tells how the service is doing, as this instance sees it.
func (m *Admin) Diagnostics(ctx context.Context, who Actor) (Diagnosis, error) {
	if _, err := m.reader(ctx, who, opDiagnostics); err != nil {
		return Diagnosis{}, err
	}
	health, err := m.kit.Diagnose(ctx)
	if err != nil {
		return Diagnosis{}, err
	}
	ages, err := m.keyAges(ctx)
	return Diagnosis{health, ages[:min(len(ages), MaxKeyAges)]}, err
}

// keyAges are the ages of the secret keys that are live, the oldest first.
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
