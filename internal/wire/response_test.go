package wire

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWrite(t *testing.T) {
	rec := httptest.NewRecorder()
	if err := Write(rec, http.StatusTeapot, map[string]string{"a": "</script>"}); err != nil {
		t.Fatal(err)
	}
	if rec.Code != http.StatusTeapot || rec.Body.String() != `{"a":"\u003c/script\u003e"}`+"\n" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if h := rec.Header(); h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", h)
	}
	rec = httptest.NewRecorder()
	rec.Header().Set("Cache-Control", "public")
	if err := Write(rec, http.StatusOK, nil); err != nil || rec.Header().Get("Cache-Control") != "public" {
		t.Errorf("%v, header %v", err, rec.Header())
	}
}

// A value that cannot be encoded does not change the response.
func TestWriteInvalidValue(t *testing.T) {
	rec := httptest.NewRecorder()
	if err := Write(rec, http.StatusOK, func() {}); err == nil {
		t.Error("no error")
	}
	if rec.Body.Len() > 0 || len(rec.Header()) > 0 {
		t.Errorf("wrote %v %s", rec.Header(), rec.Body)
	}
	rec.WriteHeader(http.StatusTeapot)
	if rec.Code != http.StatusTeapot {
		t.Errorf("status %d was written", rec.Code)
	}
}

// gone is a client that has disconnected.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

func TestWriteToClosedConnection(t *testing.T) {
	if err := Write(gone{httptest.NewRecorder()}, http.StatusOK, "x"); err != nil {
		t.Error(err)
	}
}
