package passkey

// authenticatorName returns the product name of an AAGUID, for show only, or "".
func authenticatorName(aaguid string) string { return names[aaguid] }

var names = map[string]string{}
