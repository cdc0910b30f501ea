package admin_test

import (
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// behind is the store below any tap: the tap does not see a test's setup.
func (o *office) behind() auth.Store {
	if tap, ok := o.Store.(*storetap.Tap); ok {
		return tap.Inner()
	}
	return o.Store
}

func (o *office) change() store.Change {
	return store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}
}

// read reads an account from the store.
func (o *office) read(id string) auth.User {
	o.t.Helper()
	u, err := o.behind().User(o.t.Context(), store.ByID(id))
	if err != nil {
		o.t.Fatal(err)
	}
	return u
}

// patch changes an account directly in the store.
func (o *office) patch(id string, p store.UserPatch) {
	o.t.Helper()
	u, err := o.behind().User(o.t.Context(), store.ByID(id))
	if err != nil {
		o.t.Fatal(err)
	}
	p.Accept = p.Accept || u.AcceptedSequence > 0 && p.Email != nil || u.AcceptedSequence == 0 && p.Roles != nil && len(*p.Roles) > 0
	if _, err := o.behind().UpdateUser(o.t.Context(), store.UpdateUser{Change: o.change(), UserID: id, Patch: p}); err != nil {
		o.t.Fatal(err)
	}
}

// link gives a user an identity with their own id.
func (o *office) link(target *authtest.SignedIn) {
	id := target.User.ID
	o.patch(id, store.UserPatch{Link: &auth.Identity{ID: id, Provider: "github", Subject: id, CreatedAt: o.Clock.Now()}})
}

// arm gives a user without a second factor one with their own id.
func (o *office) arm(target *authtest.SignedIn) {
	o.t.Helper()
	if o.read(target.User.ID).MFAEnabled {
		return
	}
	factors, ok := store.Capability[store.FactorStore](o.behind())
	if !ok {
		o.t.Fatal("no factors")
	}
	ctx, id := o.t.Context(), target.User.ID
	now := o.Clock.Now()
	var done store.Completion
	if target.SessionID != "" {
		done.Raise = &store.RaisedLevel{SessionID: target.SessionID, Method: auth.AMR{Method: "totp", Timestamp: now.Unix()}}
	} else {
		s := auth.Session{ID: uuid.NewString(), UserID: id, AAL: store.LevelAAL2, CreatedAt: now, RotatedAt: now, LastActiveAt: now, IdleUntil: now.Add(time.Hour)}
		done.Create = &store.NewSession{Session: s}
	}
	err := factors.PutFactor(ctx, store.PutFactor{Change: o.change(), Factor: auth.Factor{ID: id, UserID: id, Kind: store.FactorTOTP, Required: true, Label: "phone", Secret: []byte("sealed"), CreatedAt: o.Clock.Now()}})
	if err == nil {
		_, err = factors.EnableFactor(ctx, store.EnableFactor{Change: o.change(), UserID: id, FactorID: id, State: []byte{1}, Recovery: [][]byte{[]byte(id)}, Completion: done})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// token returns the token of the link in a message.
func (o *office) token(to string, k auth.Kind) string {
	o.t.Helper()
	link, err := url.Parse(o.Mail(o.t, to, k).Link)
	if err != nil {
		o.t.Fatal(err)
	}
	return link.Query().Get("token")
}
