package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Write sends v as JSON, with Cache-Control: no-store unless the header is already set.
// It returns an error only if v cannot be encoded; nothing has been written then.
func Write(w http.ResponseWriter, status int, v any) error {
	if err := json.NewEncoder(response{w, status}).Encode(v); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	return nil
}

// response writes the output of an Encoder, which is complete and in one piece.
type response struct {
	w      http.ResponseWriter
	status int
}

func (r response) Write(document []byte) (int, error) {
	h := r.w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	r.w.WriteHeader(r.status)
	_, _ = r.w.Write(document) // the client may have disconnected
	return len(document), nil
}
