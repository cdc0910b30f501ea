package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
)

// actingCookie holds the impersonations that the visitor runs in the application. It is
// for display only and grants nothing.
const actingCookie = "admin-acting"

// mostActing limits the impersonations in the cookie; the newest are stored.
const mostActing = 4

// acting is an impersonation that the visitor runs.
type acting struct {
	Label string `json:"l"`
	ID    string `json:"i"` // impersonation id
	By    string `json:"b"` // the visitor's session; the impersonation ends with it
	Until int64  `json:"u"` // Unix seconds
}

// addActing adds an impersonation to the ones that every page shows until they end.
func (v *visit) addActing(label, id string) {
	as := acting{Label: label, ID: id, By: v.ownSession(), Until: v.d.kit.Now().Add(impersonationSeconds * time.Second).Unix()}
	v.storeActing(append(v.actingWithout(id), as))
}

// actingWithout returns the visitor's impersonations without the one with this id.
func (v *visit) actingWithout(id string) []acting {
	return slices.DeleteFunc(v.actingAs(), func(a acting) bool { return a.ID == id })
}

// storeActing sets the cookie with the visitor's impersonations.
func (v *visit) storeActing(list []acting) {
	list = list[max(0, len(list)-mostActing):]
	b, err := json.Marshal(list)
	if err != nil {
		return // strings and numbers only
	}
	seconds := impersonationSeconds
	if len(list) == 0 {
		seconds = -1
	}
	v.d.kit.SetCookie(v.w, actingCookie, base64.RawURLEncoding.EncodeToString(b), seconds)
}

// ownSession returns the id of the visitor's session, or "" if the application has its
// own admin login.
func (v *visit) ownSession() string {
	if c := auth.ClaimsFrom(v.ctx); c != nil {
		return c.SessionID
	}
	return ""
}

// actingAs returns the visitor's current impersonations.
func (v *visit) actingAs() []acting {
	var list []acting
	b, err := base64.RawURLEncoding.DecodeString(v.d.kit.Cookie(v.r, actingCookie))
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	now := v.d.kit.Now().Unix()
	return slices.DeleteFunc(list, func(a acting) bool { return uuid.Validate(a.ID) != nil || a.By != v.ownSession() || a.Until <= now })
}
