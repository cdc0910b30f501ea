package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
)

// actingCookie says as whom the visitor acts in the application, for as long as that
// lasts. It opens nothing: what it says is shown.
const actingCookie = "admin-acting"

// mostActing is how many the cookie has room for; the oldest give way.
const mostActing = 4

// acting is as whom a visitor acts.
type acting struct {
	Label string `json:"l"`
	ID    string `json:"i"` // of the impersonation
	By    string `json:"b"` // the visitor's session, with which it ends
	Until int64  `json:"u"` // Unix seconds
}

// acts has every page say as whom the visitor acts, too, until that is over.
func (v *visit) acts(label, id string) {
	as := acting{Label: label, ID: id, By: v.ownSession(), Until: v.d.kit.Now().Add(impersonationSeconds * time.Second).Unix()}
	v.keepActing(append(v.actsNoMore(id), as))
}

// actsNoMore is as whom the visitor acts once one of these is over.
func (v *visit) actsNoMore(id string) []acting {
	return slices.DeleteFunc(v.actingAs(), func(a acting) bool { return a.ID == id })
}

func (v *visit) keepActing(list []acting) {
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

// ownSession is the visitor's; "" where the application has an admin login of its own.
func (v *visit) ownSession() string {
	if c := auth.ClaimsFrom(v.ctx); c != nil {
		return c.SessionID
	}
	return ""
}

// actingAs are those as whom the visitor acts.
func (v *visit) actingAs() []acting {
	var list []acting
	b, err := base64.RawURLEncoding.DecodeString(v.d.kit.Cookie(v.r, actingCookie))
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	now := v.d.kit.Now().Unix()
	return slices.DeleteFunc(list, func(a acting) bool { return uuid.Validate(a.ID) != nil || a.By != v.ownSession() || a.Until <= now })
}
