package auth

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	_ "embed"

	"github.com/authmount/auth/internal/webpage"
)

// The pages of this service use passkeys with one script. It posts the form of a page twice:
// with the field "options" for the options of the ceremony, and then with the credential.

//go:embed templates/page/passkey.js
var passkeyScript []byte

const pageScript = "/pages/passkey.js"

func (a *Auth) pageScriptAt() string { return a.publicURL().Path + pageScript }

func (a *Auth) handlePasskeyScript(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+webpage.Hash(passkeyScript)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(passkeyScript))
	return nil
}

// postedCredential returns the credential in a form of the script. Without one, the form has
// the name of the browser's error, or "refused": the script got no options, and begin, which
// is asked again, says why.
func postedCredential(form url.Values, begin func() error) (json.RawMessage, error) {
	switch {
	case form.Get("credential") != "":
		return json.RawMessage(form.Get("credential")), nil
	case form.Get("failure") == "refused":
		if err := begin(); err != nil {
			return nil, err
		}
	case form.Get("failure") == "InvalidStateError": // WebAuthn Level 3, section 5.1.3: the authenticator has one for the account
		return nil, fail(CodePasskeyAlreadyExists, nil)
	}
	return nil, fail(CodeInvalidPasskey, nil)
}
