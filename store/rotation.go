package store

import (
	"context"
	"time"

	"github.com/authmount/auth/internal/keys"
)

// KeyIDSize is how many bytes name the key that something was made under. What
// stores keep sealed (Factor.Secret, SealedMessage.Body) and the hashes of
// recovery codes begin with them.
const KeyIDSize = keys.IDSize

// RotationStore tells what is kept under which key, for rotations of the secret.
type RotationStore interface {
	// KeyUses counts what is kept, without changing anything. It may read whole
	// tables.
	KeyUses(ctx context.Context, now time.Time) (KeyUses, error)
}

// KeyUses are how many there are of what is made under a key, by the first
// KeyIDSize bytes of it, or all if there are fewer.
type KeyUses struct {
	Factors       map[string]int // by Factor.Secret, enabled and pending
	RecoveryCodes map[string]int // by their hashes
	Messages      map[string]int // by SealedMessage.Body, of those that are not over at now (ExpiresAt)
	// OldestRefresh is the earliest RotatedAt of the sessions that are live at
	// now; zero: there are none.
	OldestRefresh time.Time
}
