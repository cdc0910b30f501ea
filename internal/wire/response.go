package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Answer is the value of a response.
type Answer struct{ Value any }

// Taker is a ResponseWriter of this module that receives the value instead of its JSON.
// Pages use it to call endpoints.
type Taker interface{ TakeAnswer(a Answer) }

// Write sends v as JSON, with Cache-Control: no-store unless the header is already set.
// It returns an error only if v cannot be encoded; nothing has been written then.
func Write(w http.ResponseWriter, status int, v any) error {
	if t, ok := w.(Taker); ok {
		t.TakeAnswer(Answer{v})
		return nil
	}
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
