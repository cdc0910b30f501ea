package admin

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth"
)

const mediaNDJSON = "application/x-ndjson"

// uploadPause is how long a client may take for a part of an upload.
const uploadPause = 30 * time.Second

// upload is a body that is read bit by bit: a client that is slow is waited for, but
// not for ever.
type upload struct {
	io.Reader
	c *http.ResponseController
}

func (u upload) Read(b []byte) (int, error) {
	if err := u.c.SetReadDeadline(time.Now().Add(uploadPause)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return u.Reader.Read(b)
}

func (m *Admin) handleImportUsers(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p ImportUsersParams
	if err := m.query(r.URL.Query(), &p); err != nil {
		return err
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains([]string{mediaNDJSON, "application/ndjson", "application/jsonl"}, media) {
		return auth.Reject(auth.CodeUnsupportedMediaType, "Send one JSON object a line as application/x-ndjson.")
	}
	id, err := m.ImportUsers(r.Context(), who, p, upload{r.Body, http.NewResponseController(w)})
	if err != nil {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // the rest is not waited for
		}
		return err
	}
	a := startedJob(id)
	return m.kit.WriteJSON(w, a.status, a.body)
}
