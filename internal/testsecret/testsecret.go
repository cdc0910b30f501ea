// Package testsecret has secrets for tests that auth.New accepts.
package testsecret

import "crypto/sha256"

// Of returns the secret of a name: 32 bytes, the same each time.
func Of(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}
