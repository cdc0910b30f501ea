package memstore

import (
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
)

// Copies keep the store's values and the caller's apart.

func copyUser(u auth.User) auth.User {
	u.UserMetadata, u.AppMetadata = copyMap(u.UserMetadata), copyMap(u.AppMetadata)
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	u.Claims = nil // kept nowhere
	return u
}

func copySession(s auth.Session) auth.Session {
	s.AMR = slices.Clone(s.AMR)
	return s
}

func copyToken(t auth.Token) auth.Token {
	t.Hash, t.Data = slices.Clone(t.Hash), slices.Clone(t.Data)
	return t
}

func cloneAll(list [][]byte) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = slices.Clone(b)
	}
	return out
}

func copyMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = copyValue(v)
	}
	return out
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyValue(e)
		}
		return out
	}
	return v
}

// byAge is the order of lists: by time and then by id.
func byAge(a time.Time, aID string, b time.Time, bID string) int {
	if c := a.Compare(b); c != 0 {
		return c
	}
	return strings.Compare(aID, bID)
}
