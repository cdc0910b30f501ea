package auth_test

import (
	"net/http"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
)

// A room's endpoints are let through, refused and answered as the others are.
func TestKitHandler(t *testing.T) {
	w := newWorld(t, auth.WithAPIKeys("pk_test_12345678"))
	kit := host.Of(w)
	room := kit.Handler("/room", []host.Route{
		{Pattern: "GET /open", Access: host.Open, Handle: func(rw http.ResponseWriter, _ *http.Request) error {
			return kit.WriteJSON(rw, http.StatusOK, map[string]string{"id": kit.NewID()})
		}},
		{Pattern: "POST /keyed", Access: host.Keyed, Handle: func(_ http.ResponseWriter, r *http.Request) error {
			var p struct {
				Name string `json:"name"`
			}
			if err := kit.Decode(r, &p); err != nil {
				return err
			}
			return kit.Invalid("name", "is "+p.Name)
		}},
		{Pattern: "POST /maybe", Access: host.Open, Handle: func(rw http.ResponseWriter, r *http.Request) error {
			var p struct {
				Name string `json:"name"`
			}
			if err := kit.DecodeOptional(r, &p); err != nil {
				return err
			}
			return kit.WriteJSON(rw, http.StatusOK, p)
		}},
		{Pattern: "GET /mine", Access: host.SignedIn, Handle: func(rw http.ResponseWriter, r *http.Request) error {
			s, u := kit.Current(r.Context())
			return kit.WriteJSON(rw, http.StatusOK, map[string]string{"session": s.ID, "user": u.ID})
		}},
		{Pattern: "GET /panic", Access: host.Open, Handle: func(http.ResponseWriter, *http.Request) error { panic("room") }},
	})
	ada := w.LoginAs(t, "ada@example.com")
	key := header{"Apikey", "pk_test_12345678"}
	on := func(method, path string, body any, headers ...header) *answer {
		t.Helper()
		return w.doOn(room, method, path, body, headers...)
	}
	on("GET", "/auth/v1/room/open", nil).want(200)
	on("GET", "/room/open", nil).want(200)
	on("POST", "/room/keyed", map[string]any{"name": "x"}).want(401, auth.CodeInvalidAPIKey)
	on("POST", "/room/keyed", map[string]any{"name": "x"}, key).want(422, auth.CodeValidationFailed)
	on("POST", "/room/keyed", `{"name":"x","name":"y"}`, key).want(400, auth.CodeBadJSON)
	on("POST", "/room/maybe", `{"name":1}`).want(400, auth.CodeBadJSON)
	for body, want := range map[any]string{nil: "", `{"name":"x"}`: "x"} {
		if got := decodeAs[map[string]string](on("POST", "/room/maybe", body).want(200))["name"]; got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
	on("GET", "/room/mine", nil, key).want(401, auth.CodeMissingToken)
	mine := decodeAs[map[string]string](on("GET", "/room/mine", nil, key, bearer(ada.AccessToken)).want(200))
	if mine["user"] != ada.User.ID || mine["session"] != ada.SessionID {
		t.Errorf("current %v", mine)
	}
	on("GET", "/room/panic", nil).want(500, auth.CodeInternal)
	drawn := kit.Page(func(http.ResponseWriter, *http.Request) error { panic("page") }, w.WriteError)
	w.doOn(drawn, "GET", "/page", nil).want(500, auth.CodeInternal)
	on("DELETE", "/room/open", nil).want(405, auth.CodeMethodNotAllowed)
	on("GET", "/room/other", nil).want(404, auth.CodeNotFound)
	if err := w.Logout(t.Context(), auth.LogoutParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
		t.Fatal(err)
	}
	on("GET", "/room/mine", nil, key, bearer(ada.AccessToken)).want(401, auth.CodeSessionEnded)
}
