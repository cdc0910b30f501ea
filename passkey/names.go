package passkey

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// namesFile has the product names of AAGUIDs; make passkey-names refreshes it.
//
//go:embed names.json
var namesFile []byte

var names = sync.OnceValue(func() (m map[string]string) {
	if err := json.Unmarshal(namesFile, &m); err != nil {
		panic(err) // a broken build
	}
	return m
})

// authenticatorName returns the product name of an AAGUID, for show only, or "". Nobody
// vouches for an AAGUID without attestation.
func authenticatorName(aaguid string) string { return names()[aaguid] }
