package service_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// The endpoints of a package built on Auth are permitted, refused and answered as the others are.
func TestKitHandler(t *testing.T) {
	w := harness.NewWorld(t, auth.WithAPIKeys("pk_test_12345678"))
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
	key := harness.Header{Name: "Apikey", Value: "pk_test_12345678"}
	on := func(method, path string, body any, headers ...harness.Header) *harness.Answer {
		t.Helper()
		return w.DoOn(room, method, path, body, headers...)
	}
	on("GET", "/auth/v1/room/open", nil).Want(200)
	on("GET", "/room/open", nil).Want(200)
	on("POST", "/room/keyed", map[string]any{"name": "x"}).Want(401, auth.CodeInvalidAPIKey)
	on("POST", "/room/keyed", map[string]any{"name": "x"}, key).Want(422, auth.CodeValidationFailed)
	on("POST", "/room/keyed", `{"name":"x","name":"y"}`, key).Want(400, auth.CodeBadJSON)
	on("POST", "/room/maybe", `{"name":1}`).Want(400, auth.CodeBadJSON)
	for body, want := range map[any]string{nil: "", `{"name":"x"}`: "x"} {
		if got := harness.DecodeAs[map[string]string](on("POST", "/room/maybe", body).Want(200))["name"]; got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
	on("GET", "/room/mine", nil, key).Want(401, auth.CodeMissingToken)
	mine := harness.DecodeAs[map[string]string](on("GET", "/room/mine", nil, key, harness.Bearer(ada.AccessToken)).Want(200))
	if mine["user"] != ada.User.ID || mine["session"] != ada.SessionID {
		t.Errorf("current %v", mine)
	}
	on("GET", "/room/panic", nil).Want(500, auth.CodeInternal)
	drawn := kit.Page(func(http.ResponseWriter, *http.Request) error { panic("page") }, w.WriteError)
	w.DoOn(drawn, "GET", "/page", nil).Want(500, auth.CodeInternal)
	on("DELETE", "/room/open", nil).Want(405, auth.CodeMethodNotAllowed)
	on("GET", "/room/other", nil).Want(404, auth.CodeNotFound)
	if err := w.Logout(t.Context(), auth.LogoutParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
		t.Fatal(err)
	}
	on("GET", "/room/mine", nil, key, harness.Bearer(ada.AccessToken)).Want(401, auth.CodeSessionEnded)
}

// Without a sender, no test message is sent to a phone.
func TestNoTextWithoutASender(t *testing.T) {
	a := harness.NewPlain(t)
	_, err := host.Of(a).PermitTest(t.Context(), auth.User{ID: "ada", Phone: harness.PhoneNumber, PhoneVerifiedAt: time.Now()}, auth.ChannelSMS)
	if !errors.Is(err, auth.CodeMethodDisabled) {
		t.Error(err)
	}
}

// The description of a client contains a list even if nothing is forwarded.
func TestDiagnosisListsWhatIsForwarded(t *testing.T) {
	w := harness.NewWorld(t)
	d, err := host.Of(w).Diagnose(t.Context())
	if err != nil || d.Client.Forwarded == nil || len(d.Client.Forwarded) != 0 {
		t.Errorf("%+v, %v", d.Client, err)
	}
}

// A user who is banned before a started link returns gets the error of the ban.
func TestLinkOfTheBanned(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.Member("ada@example.com")
	to := w.NewVisitor(idp).Link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	idp.SignsIn(harness.EvilGit)
	back := idp.Authorize(t, to)
	until := w.Clock.Now().Add(time.Hour)
	w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	q := w.NewVisitor(idp).Back("github", back).Location().Query()
	if q.Has("code") || q.Get("error_code") != string(auth.CodeUserBanned) {
		t.Errorf("the redirect says %v", q)
	}
}
