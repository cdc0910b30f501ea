package storetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// account is a user with origins that are compared before and after each change.
type account struct {
	*bench
	id       string
	sessions map[string]store.Session // by a name in the check
	tokens   map[string]store.TokenRef
}

func (b *bench) account(u store.User) *account {
	return &account{b, u.ID, map[string]store.Session{}, map[string]store.TokenRef{}}
}

// origins returns the origins of everything that the account has, and its sequence as
// "account". Missing fields and sessions have none.
func (a *account) origins() map[string]store.Origin {
	a.Helper()
	all := map[string]store.Origin{}
	u := newWorld(a.bench).as(a.id)
	for name, field := range sequences(&u) {
		all[name] = store.Origin{Sequence: *field.Sequence, AddedBy: *field.AddedBy}
	}
	for _, i := range u.Identities {
		all["identity "+i.Subject] = i.Origin
	}
	for name, s := range a.sessions {
		if kept, _, err := a.Session(a.ctx(), s.ID, now); err == nil {
			all["session "+name] = kept.Origin
		}
	}
	for name, ref := range a.tokens {
		if kept, err := a.PeekToken(a.ctx(), ref.Purpose, ref.Hash, now); err == nil {
			all["token "+name] = kept.Origin
		}
	}
	if a.factors != nil {
		fs, err := a.factors.Factors(a.ctx(), a.id)
		a.ok(err)
		all["recovery"] = fs.Recovery
		for _, f := range fs.List {
			all["factor "+f.Label] = f.Origin
		}
	}
	held, err := a.UserRecords(a.ctx(), a.id, now)
	a.ok(err)
	for _, d := range held.Devices {
		all["device "+d.Device] = d.Origin
	}
	maps.DeleteFunc(all, func(_ string, o store.Origin) bool { return o == store.Origin{} })
	all["account"] = store.Origin{Sequence: u.Sequence}
	return all
}

// step makes a change. It checks that the sequence is raised once if something is added,
// that all additions have the raised value, and that everything else is unchanged.
func (a *account) step(name string, addedBy int64, do func() error, added ...string) {
	a.Helper()
	a.remove(name, addedBy, do, nil, added...)
}

// remove is step for a change that also removes something.
func (a *account) remove(name string, addedBy int64, do func() error, removed []string, added ...string) {
	a.Helper()
	want := a.origins()
	a.of("%s", name).ok(do())
	sequence := want["account"].Sequence
	if len(added) > 0 {
		sequence++
	}
	want["account"] = store.Origin{Sequence: sequence}
	for _, thing := range removed {
		delete(want, thing)
	}
	for _, thing := range added {
		want[thing] = store.Origin{Sequence: sequence, AddedBy: addedBy}
	}
	need(a.of("%s", name), "origins", a.origins(), want)
}

// issue issues a token and names it.
func (a *account) issue(name string, p store.Purpose, c store.Change) error {
	t := newToken(a.id+name, a.id+name)
	t.Purpose, t.UserID, t.Origin = p, a.id, store.Origin{Sequence: 99, AddedBy: 99}
	a.tokens[name] = store.TokenRef{Purpose: p, Hash: t.Hash}
	return a.PutToken(a.ctx(), store.PutToken{Change: c, Token: t})
}

// signInAs creates a session on a device and names it.
func (a *account) signInAs(name, device string, c store.Change) error {
	s := a.newSession(a.id)
	s.AAL, s.Device, s.CreatedAt, s.Origin = store.LevelAAL2, device, c.Now, store.Origin{Sequence: 99, AddedBy: 99}
	s.IdleUntil = now.Add(24 * time.Hour)
	a.sessions[name] = s
	_, err := a.CreateSession(a.ctx(), store.CreateSession{Change: c, NewSession: store.NewSession{Session: s}})
	return err
}

// patch patches the account.
func (a *account) patch(c store.Change, p store.UserPatch) func() error {
	return func() error {
		_, err := a.UpdateUser(a.ctx(), store.UpdateUser{Change: c, UserID: a.id, Patch: p})
		return err
	}
}

// bySession is a change in the name of a session.
func bySession(s store.Session) store.Change {
	return store.Change{Now: now, By: store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: s.UserID}}}
}

// byToken is a change in the name of a token.
func byToken(ref store.TokenRef) store.Change {
	return store.Change{Now: now, By: store.Authority{Token: &ref}}
}

// from returns a session's stored sequence.
func (a *account) from(name string) int64 {
	a.Helper()
	return a.origins()["session "+name].Sequence
}

// sequenceChecks checks the order of changes of an account.
func sequenceChecks() checks {
	return checks{
		"a new user begins at 1, with everything that comes with it": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.User.EmailVerifiedAt, nu.User.Phone, nu.User.PhoneVerifiedAt, nu.PasswordHash = now, "+4930123456", now, "hash"
			nu.User.Identities = []store.Identity{b.identity("p", "1")}
			nu.User.Identities[0].Origin, nu.User.Sequence, nu.User.EmailAddedBy = store.Origin{Sequence: 99, AddedBy: 99}, 99, 99
			a := b.account(nu.User)
			s, t, other := b.newSession(nu.User.ID), newToken("t", ""), newToken("e", "")
			s.Device, t.UserID, other.UserID, other.Purpose = "one", nu.User.ID, nu.User.ID, store.PurposeEnroll
			nu.Session, nu.Tokens, a.sessions["first"] = &s, []store.Token{t, other}, s
			a.tokens["link"], a.tokens["enrolment"] = store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}, store.TokenRef{Purpose: other.Purpose, Hash: other.Hash}
			u, err := b.create(nu)
			b.ok(err)
			b.begins(a, u, "Password", "Email", "EmailVerified", "Phone", "PhoneVerified", "identity 1", "session first", "token link", "token enrolment", "device one")
			bare, err := b.create(b.newUser(""))
			b.ok(err)
			b.begins(b.account(bare), bare)
		},
		"a change raises the sequence once, and everything that it adds has the raised value": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			a.step("a session on a new device", 0, func() error { return a.signInAs("one", "one", by(now)) }, "session one", "device one")
			a.step("a session on a known device", 0, func() error { return a.signInAs("two", "one", by(now)) }, "session two")
			a.step("a session without a device", 0, func() error { return a.signInAs("three", "", by(now)) }, "session three")
			a.step("a password", 0, a.patch(by(now), store.UserPatch{PasswordHash: ptr("a")}), "Password")
			a.step("an address", 0, a.patch(by(now), store.UserPatch{Email: ptr("new@example.com")}), "Email")
			a.step("a verified address", 0, a.patch(by(now), store.UserPatch{EmailVerifiedAt: ptr(now)}), "EmailVerified")
			a.step("both", 0, a.patch(by(now), store.UserPatch{Email: ptr("a@example.com"), EmailVerifiedAt: ptr(now)}), "Email", "EmailVerified")
			a.step("a phone number", 0, a.patch(by(now), store.UserPatch{Phone: ptr("+49301")}), "Phone")
			a.step("a verified phone number", 0, a.patch(by(now), store.UserPatch{PhoneVerifiedAt: ptr(now)}), "PhoneVerified")
			a.step("an identity", 0, a.patch(by(now), store.UserPatch{Link: ptr(b.identity("p", "1"))}), "identity 1")
			a.step("another one", 0, a.patch(by(now), store.UserPatch{Link: ptr(b.identity("p", "2"))}), "identity 2")
			a.step("an identity linked again", 0, a.patch(by(now), store.UserPatch{Link: ptr(b.identity("p", "1"))}))
			a.step("an identity linked again, with a password", 0, a.patch(by(now), store.UserPatch{Link: ptr(b.identity("p", "1")), PasswordHash: ptr("b")}), "Password")
			a.step("an enrolment token", 0, func() error { return a.issue("enrolment", store.PurposeEnroll, by(now)) }, "token enrolment")
			before := a.origins()["account"].Sequence
			b.ok(a.issue("link", store.PurposeMagicLink, by(now)))
			equal(b, "origin of another token", a.origins()["token link"], store.Origin{Sequence: before})
			equal(b, "User.Sequence after another token", a.origins()["account"].Sequence, before)
			a.remove("a token is redeemed for all of it", 0, func() error {
				_, _, err := b.RedeemToken(b.ctx(), store.Redemption{Change: proof(now), Purpose: store.PurposeMagicLink, Hash: a.tokens["link"].Hash, Effect: store.Effect{Patch: &store.UserPatch{
					PasswordHash: ptr("c"), EmailVerifiedAt: ptr(now), Phone: ptr("+49302"), PhoneVerifiedAt: ptr(now), Link: ptr(b.identity("p", "3")),
				}}})
				return err
			}, []string{"token link"}, "Password", "EmailVerified", "Phone", "PhoneVerified", "identity 3")
			a.remove("everything else is removed", 0, a.patch(by(now), store.UserPatch{DropCredentials: true, PasswordHash: ptr("d"), Link: ptr(b.identity("p", "1"))}),
				[]string{"session one", "session two", "session three", "device one", "token enrolment", "identity 2", "identity 3", "Email", "EmailVerified", "Phone", "PhoneVerified"}, "Password", "identity 1")
		},
		"what adds nothing leaves the sequence as it is": func(b *bench) {
			a := b.account(b.whole())
			b.ok(a.signInAs("one", "one", by(now)))
			b.ok(a.signInAs("two", "two", by(now)))
			b.ok(a.issue("link", store.PurposeMagicLink, by(now)))
			s := a.sessions["one"]
			a.step("a refresh", 0, func() error { _, err := b.advance(s.ID, 0, now.Add(us)); return err })
			a.step("another method of a session", 0, func() error {
				_, _, err := b.AddAuthentication(b.ctx(), store.AddAuthentication{Change: bySession(s), SessionID: s.ID, Proof: totp})
				return err
			})
			for name, p := range map[string]store.UserPatch{
				"names and metadata": {FullName: ptr("x"), UserMetadata: map[string]any{"x": "y"}, AppMetadata: map[string]any{"x": "y"}, Notes: ptr("x")},
				"a rehash":           {Rehash: ptr("x")},
				"roles":              {Roles: &[]string{"x"}},
				"a ban":              {BannedUntil: ptr(now)},
				"nothing":            {},
				"second factors":     {DropFactors: true},
			} {
				a.step(name, 0, a.patch(by(now), p))
			}
			a.remove("an identity is removed", 0, a.patch(by(now), store.UserPatch{Unlink: ptr(store.ByIdentity("p", "1"))}), nil)
			a.remove("a verification is removed", 0, a.patch(by(now), store.UserPatch{EmailVerifiedAt: &time.Time{}}), []string{"EmailVerified"})
			a.remove("an address is removed", 0, a.patch(by(now), store.UserPatch{Email: ptr("")}), []string{"Email"})
			a.remove("a phone number is removed", 0, a.patch(by(now), store.UserPatch{Phone: ptr(""), PhoneVerifiedAt: &time.Time{}}), []string{"Phone", "PhoneVerified"})
			a.remove("a password is removed", 0, a.patch(by(now), store.UserPatch{PasswordHash: ptr("")}), []string{"Password"})
			a.remove("a token is used", 0, func() error {
				_, _, err := b.RedeemToken(b.ctx(), store.Redemption{Change: proof(now), Purpose: store.PurposeMagicLink, Hash: a.tokens["link"].Hash})
				return err
			}, []string{"token link"})
			a.remove("a session is revoked", 0, func() error { _, err := b.revoke(a.id, store.SessionFilter{ID: a.sessions["two"].ID}); return err }, []string{"session two"})
		},
		"a refused change raises no sequence": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			b.user("eve@example.com")
			b.ok(a.signInAs("one", "one", by(now)))
			before := a.origins()
			stale := by(now)
			stale.IfUsers = []store.UserAt{{ID: a.id, PasswordHash: ptr("other")}}
			b.is(a.patch(stale, store.UserPatch{PasswordHash: ptr("x")})(), store.ErrStale)
			b.is(a.signInAs("refused", "two", stale), store.ErrStale)
			b.is(a.issue("refused", store.PurposeEnroll, stale), store.ErrStale)
			b.conflict(a.patch(by(now), store.UserPatch{Email: ptr("EVE@example.com"), PasswordHash: ptr("x")})(), "email")
			equal(b, "origins after refused changes", a.origins(), before)
		},
		"what is added names the session or enrolment token that added it": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			a, foreign := b.account(u), b.session(eve.ID)
			b.ok(a.signInAs("old", "", by(now)))
			b.ok(a.signInAs("one", "", by(now)))
			one := a.from("one")
			own := bySession(a.sessions["one"])
			a.step("a password within a session", one, a.patch(own, store.UserPatch{PasswordHash: ptr("a")}), "Password")
			a.step("all fields within a session", one, a.patch(own, store.UserPatch{Email: ptr("b@example.com"), EmailVerifiedAt: ptr(now), Phone: ptr("+49301"), PhoneVerifiedAt: ptr(now), Link: ptr(b.identity("p", "1"))}),
				"Email", "EmailVerified", "Phone", "PhoneVerified", "identity 1")
			a.step("an identity linked again by the application", 0, a.patch(by(now), store.UserPatch{Link: ptr(b.identity("p", "1"))}))
			a.step("a session within a session", one, func() error { return a.signInAs("two", "two", own) }, "session two", "device two")
			a.step("an enrolment token within a session", one, func() error { return a.issue("enrolment", store.PurposeEnroll, own) }, "token enrolment")
			b.ok(a.issue("link", store.PurposeMagicLink, own))
			a.step("within another user's session", 0, a.patch(bySession(foreign), store.UserPatch{PasswordHash: ptr("b")}), "Password")
			enrolment := a.origins()["token enrolment"].Sequence
			a.step("in the name of an enrolment token", enrolment, a.patch(byToken(a.tokens["enrolment"]), store.UserPatch{PasswordHash: ptr("c")}), "Password")
			a.step("in the name of another token", 0, a.patch(byToken(a.tokens["link"]), store.UserPatch{PasswordHash: ptr("d")}), "Password")
			external := store.Change{Now: now, By: store.Authority{External: "4711"}}
			a.step("by somebody outside", 0, a.patch(external, store.UserPatch{PasswordHash: ptr("e")}), "Password")
			if b.project != nil {
				k, err := b.putKey(b.newKey("k"))
				b.ok(err)
				c := store.Change{Now: now, By: store.Authority{Key: &store.KeyRef{ID: k.ID, Revision: k.Revision}}}
				a.step("with an API key", 0, a.patch(c, store.UserPatch{PasswordHash: ptr("f")}), "Password")
			}
			redeem := func(name string, c store.Change) func() error {
				return func() error {
					_, _, err := b.RedeemToken(b.ctx(), store.Redemption{Change: c, Purpose: a.tokens[name].Purpose, Hash: a.tokens[name].Hash, Effect: store.Effect{Patch: &store.UserPatch{PasswordHash: ptr(name)}}})
					return err
				}
			}
			a.remove("by another token that is redeemed", 0, redeem("link", proof(now)), []string{"token link"}, "Password")
			a.remove("by an enrolment token that is redeemed", enrolment, redeem("enrolment", proof(now)), []string{"token enrolment"}, "Password")
			b.ok(a.issue("link", store.PurposeMagicLink, by(now)))
			a.remove("by a token that is redeemed within a session", one, redeem("link", own), []string{"token link"}, "Password")
		},
		"parallel changes have sequences of their own": func(b *bench) {
			for range 3 {
				a := b.account(b.user(""))
				var mu sync.Mutex
				var sessions []store.Session
				var passwords []int64
				won, _ := b.race(func(i int) error {
					if i%2 == 0 {
						u, err := b.update(a.id, store.UserPatch{PasswordHash: ptr(fmt.Sprint(i))})
						mu.Lock()
						defer mu.Unlock()
						passwords = append(passwords, u.PasswordSequence)
						return err
					}
					s := b.newSession(a.id)
					s.Device = fmt.Sprint(i)
					_, err := b.signIn(s)
					mu.Lock()
					defer mu.Unlock()
					sessions = append(sessions, s)
					return err
				})
				need(b, "successful parallel calls", won, parallel)
				all := passwords
				for _, s := range sessions {
					kept, _, err := b.Session(b.ctx(), s.ID, now)
					b.ok(err)
					all = append(all, kept.Sequence)
				}
				slices.Sort(all)
				var want []int64
				for i := range parallel {
					want = append(want, int64(i)+2)
				}
				need(b, "sequences", all, want)
				need(b, "User.Sequence", a.origins()["account"].Sequence, int64(parallel)+1)
			}
		},
	}
}

// begins checks that a new user has sequence 1, with exactly the named things.
func (b *bench) begins(a *account, u store.User, things ...string) {
	b.Helper()
	want := map[string]store.Origin{"account": {Sequence: 1}}
	for _, thing := range things {
		want[thing] = store.Origin{Sequence: 1}
	}
	if u.Email != "" {
		want["Email"] = store.Origin{Sequence: 1}
	}
	equal(b, "origins", a.origins(), want)
	equal(b, "User of the change", plain(u), plain(newWorld(b).as(u.ID)))
}
