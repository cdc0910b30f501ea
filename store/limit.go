package store

import "context"

// LimitStore forgets what was drawn from limits (Store.Take), for operators.
type LimitStore interface {
	// ClearLimits fills the buckets that Keys names, as if nothing was ever drawn
	// from them; one that is not there is no error. The change is about UserID:
	// ErrNotFound if there is no such user.
	ClearLimits(ctx context.Context, c ClearLimits) error
}

// ClearLimits is the parameter of LimitStore.ClearLimits.
type ClearLimits struct {
	Change
	UserID string
	Keys   []string // as in Draw
}
