package storetest

import (
	"fmt"

	"github.com/authmount/auth/store"
)

// passkey describes a pending factor of a kind that an account may have several of and no
// sign-in needs.
func (b *bench) passkey(userID, label string) store.Factor {
	b.Helper()
	f := b.newFactor(userID)
	f.Kind, f.Several, f.Required, f.Label, f.Credential = "passkey", true, false, label, []byte("credential "+f.ID)
	return f
}

// enables stores and enables a factor within a session.
func (b *bench) enables(f store.Factor, s store.Session) store.User {
	b.Helper()
	b.ok(b.putFactor(f))
	e := enabling(f, s)
	e.Recovery = nil
	done, err := b.factors.EnableFactor(b.ctx(), e)
	b.ok(err)
	return done.User
}

// labels returns the labels of a user's factors, in order; pending ones have "pending"
// after theirs.
func (b *bench) labels(userID string) []string {
	b.Helper()
	fs, err := b.factors.Factors(b.ctx(), userID)
	b.ok(err)
	list := []string{}
	for _, f := range fs.List {
		if !f.Enabled {
			f.Label += " pending"
		}
		list = append(list, f.Label)
	}
	return list
}

// factorKinds checks kinds of factors, credentials and handles.
func factorKinds() checks {
	return checks{
		"an account has several factors of a kind only if the kind says so": func(b *bench) {
			u := b.user("ada@example.com")
			s := b.session(u.ID)
			for _, label := range []string{"one", "two"} {
				got := b.enables(b.passkey(u.ID, label), s)
				equal(b, "User.MFAEnabled with factors that no sign-in needs", got.MFAEnabled, false)
			}
			b.session(u.ID) // with one factor
			pending := b.passkey(u.ID, "three")
			b.ok(b.putFactor(b.passkey(u.ID, "replaced")))
			b.ok(b.putFactor(pending))
			listed(b, "factors", b.labels(u.ID), []string{"one", "two", "three pending"})
			app := b.newFactor(u.ID)
			got := b.enables(app, s)
			equal(b, "User.MFAEnabled with a factor that every sign-in needs", got.MFAEnabled, true)
			b.of("a second factor of a kind that is not Several").conflict(b.putFactor(b.newFactor(u.ID)), "factor")
			_, err := b.signIn(b.newSession(u.ID))
			b.is(err, store.ErrMFARequired)
			got = b.enables(b.passkey(u.ID, "four"), s)
			equal(b, "User.MFAEnabled", got.MFAEnabled, true)
			got, err = b.removeFactor(u.ID, app.ID)
			b.ok(err)
			equal(b, "User.MFAEnabled without the factor that every sign-in needs", got.MFAEnabled, false)
			listed(b, "factors", b.labels(u.ID), []string{"one", "two", "four"})
			got, err = b.update(u.ID, store.UserPatch{DropFactors: true})
			b.ok(err)
			equal(b, "User.MFAEnabled", got.MFAEnabled, false)
			b.hasNone(u.ID)
		},
		"a credential belongs to one factor of all accounts": func(b *bench) {
			ada, eve := b.user("ada@example.com"), b.user("eve@example.com")
			pending := b.passkey(ada.ID, "pending")
			b.ok(b.putFactor(pending))
			enabled := b.passkey(ada.ID, "enabled")
			enabled.Kind = "another"
			b.enables(enabled, b.session(ada.ID))
			for _, taken := range []store.Factor{pending, enabled} {
				theirs := b.passkey(eve.ID, "theirs")
				theirs.Credential = taken.Credential
				b.of("the Credential of a factor that is %s", taken.Label).conflict(b.putFactor(theirs), "factor")
				nu := b.newUser("bob@example.com")
				nu.Factors = []store.Factor{theirs}
				_, err := b.create(nu)
				b.of("the Credential of a factor that is %s", taken.Label).conflict(err, "factor")
				if b.admin != nil {
					errs, err := b.admin.CreateUsers(b.ctx(), store.CreateUsers{Change: by(now), Users: []store.ImportedRow{{User: nu.User, Factors: nu.Factors}}})
					b.ok(err)
					need(b, "number of results", len(errs), 1)
					b.of("the Credential of a factor that is %s", taken.Label).conflict(errs[0], "factor")
				}
				_, err = b.User(b.ctx(), store.ByEmail("bob@example.com"))
				b.is(err, store.ErrNotFound)
			}
			again := b.passkey(ada.ID, "again") // replaces the pending one with this credential
			again.Credential = pending.Credential
			b.ok(b.putFactor(again))
			twice := b.newUser("bob@example.com")
			twice.Factors = []store.Factor{b.passkey("", "one"), b.passkey("", "two")}
			twice.Factors[1].Credential = twice.Factors[0].Credential
			_, err := b.create(twice)
			b.of("a new user with one Credential twice").conflict(err, "factor")
			_, err = b.update(ada.ID, store.UserPatch{DropFactors: true})
			b.ok(err)
			free := b.passkey(eve.ID, "free")
			free.Credential = enabled.Credential
			b.ok(b.putFactor(free))
			b.ok(b.delete(eve.ID))
			free = b.passkey(ada.ID, "free")
			free.Credential = enabled.Credential
			b.ok(b.putFactor(free))
			b.ok(b.putFactor(b.newFactor(ada.ID))) // an empty credential is not unique
			b.ok(b.putFactor(b.newFactor(b.user("").ID)))
		},
		"the id of a factor belongs to one of all accounts": func(b *bench) {
			u, f := b.user("ada@example.com"), b.pending(b.user("eve@example.com").ID)
			mine := b.newFactor(u.ID)
			mine.ID = f.ID
			b.of("the id of another user's factor").conflict(b.putFactor(mine), "factor")
			b.hasNone(u.ID)
			b.has(f, 0)
		},
	}
}

// completions checks Completion.
func completions() checks {
	all := checks{}
	for name, use := range map[string]func(b *bench, u store.User, f store.Factor, c store.Change, done store.Completion) (store.FactorResult, error){
		"enabling": func(b *bench, u store.User, f store.Factor, c store.Change, done store.Completion) (store.FactorResult, error) {
			e := enabling(f, store.Session{})
			e.Change, e.UserID, e.Completion = c, u.ID, done
			return b.factors.EnableFactor(b.ctx(), e)
		},
		"a use": func(b *bench, u store.User, f store.Factor, c store.Change, done store.Completion) (store.FactorResult, error) {
			use := using(f, "used")
			use.Change, use.UserID, use.Completion = c, u.ID, done
			return b.factors.UseFactor(b.ctx(), use)
		},
		"a recovery code": func(b *bench, u store.User, _ store.Factor, c store.Change, done store.Completion) (store.FactorResult, error) {
			return b.factors.UseRecoveryCode(b.ctx(), store.UseRecoveryCode{Change: c, UserID: u.ID, Hashes: [][]byte{hashOf("r1")}, Completion: done})
		},
	} {
		// start returns an account with a factor to use, a token, and a session to raise.
		start := func(b *bench) (a *account, u store.User, f store.Factor, t store.TokenRef) {
			b.Helper()
			u = b.user(b.id() + "@example.com")
			a = b.account(u)
			if name == "enabling" {
				f = b.pending(u.ID)
			} else {
				u, _, f = b.enrol(u)
			}
			b.ok(a.signInAs("one", "one", by(now)))
			b.ok(a.issue("link", store.PurposeMFA, by(now)))
			return a, u, f, a.tokens["link"]
		}
		all[name+" completes everything at once"] = func(b *bench) {
			a, u, f, ref := start(b)
			kept := a.sessions["one"]
			s := raised(b.newSession(u.ID))
			s.Device = "two"
			var ended []string
			made := 0
			before := newWorld(b).as(u.ID)
			done, err := use(b, u, f, by(now), store.Completion{Redeem: &ref, Create: &store.NewSession{
				Session: s, KeepSessions: 1, TrustUntil: now.Add(month), Ended: func(ids []string) { ended = ids }, OnNewDevice: store.NewDevice{Made: func() { made++ }},
			}})
			b.ok(err)
			got, owner, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, s)
			equal(b, "FactorResult.Session", done.Session, got)
			equal(b, "FactorResult.User", plain(done.User), plain(owner))
			equal(b, "User.Sequence", owner.Sequence, before.Sequence+1)
			equal(b, "Session.Origin", got.Origin, store.Origin{Sequence: owner.Sequence})
			_, _, err = b.Session(b.ctx(), kept.ID, now)
			b.is(err, store.ErrSessionEnded)
			if !contains(ended, kept.ID) {
				b.wrong("NewSession.Ended", ended, "the session that ended among them")
			}
			equal(b, "NewDevice.Made, calls", made, 1)
			b.knows(u.ID, "two", true)
			b.trusts(u.ID, "two", now.Add(month))
			_, err = b.PeekToken(b.ctx(), ref.Purpose, ref.Hash, now)
			b.is(err, store.ErrNotFound)
			if name == "a recovery code" {
				equal(b, "FactorResult.RecoveryLeft", done.RecoveryLeft, 1)
			}
		}
		all[name+" raises a session and uses up a token"] = func(b *bench) {
			a, u, f, ref := start(b)
			one := a.sessions["one"]
			before := newWorld(b).as(u.ID).Sequence
			done, err := use(b, u, f, by(now), store.Completion{Redeem: &ref, Raise: &store.RaisedLevel{SessionID: one.ID, Method: totp}})
			b.ok(err)
			b.sameSession(done.Session, raised(one))
			_, err = b.PeekToken(b.ctx(), ref.Purpose, ref.Hash, now)
			b.is(err, store.ErrNotFound)
			if name == "enabling" {
				before++
			}
			equal(b, "User.Sequence", done.User.Sequence, before)
		}
		all[name+" that is refused changes nothing"] = func(b *bench) {
			a, u, f, ref := start(b)
			eve := b.user("eve@example.com")
			theirs := b.account(eve)
			b.ok(theirs.issue("theirs", store.PurposeMFA, by(now)))
			foreign, unknown := theirs.tokens["theirs"], store.TokenRef{Purpose: ref.Purpose, Hash: hashOf("unknown")}
			again := raised(b.newSession(u.ID))
			again.ID = a.sessions["one"].ID
			low, strange := b.newSession(u.ID), raised(b.newSession(u.ID))
			strange.Device = "strange"
			stale := by(now)
			stale.IfUsers = []store.UserAt{{ID: u.ID, PasswordHash: ptr("other")}}
			for refusal, r := range map[string]struct {
				change store.Change
				done   store.Completion
				want   error
			}{
				"a token of another user": {by(now), store.Completion{Redeem: &foreign}, store.ErrNotFound},
				"an unknown token":        {by(now), store.Completion{Redeem: &unknown, Create: &store.NewSession{Session: strange}}, store.ErrNotFound},
				"a session that is not":   {by(now), store.Completion{Redeem: &ref, Raise: &store.RaisedLevel{SessionID: b.id(), Method: totp}}, store.ErrSessionEnded},
				"an id that is taken":     {by(now), store.Completion{Redeem: &ref, Create: &store.NewSession{Session: again}}, store.ErrConflict},
				"a session of one factor": {by(now), store.Completion{Redeem: &ref, Create: &store.NewSession{Session: low}}, store.ErrMFARequired},
				"a new device":            {by(now), store.Completion{Redeem: &ref, Create: &store.NewSession{Session: strange, OnNewDevice: store.NewDevice{Refuse: true}}}, store.ErrNewDevice},
				"a condition":             {stale, store.Completion{Redeem: &ref, Create: &store.NewSession{Session: strange}}, store.ErrStale},
			} {
				w := newWorld(b)
				w.users, w.sessions = []string{u.ID, eve.ID}, []string{a.sessions["one"].ID, low.ID, strange.ID}
				w.tokens = []store.TokenRef{ref, foreign}
				before, origins := w.state(), a.origins()
				_, err := use(b, u, f, r.change, r.done)
				b.of("%s", refusal).is(err, r.want)
				b.unchanged("refused for "+refusal, before, w.state())
				equal(b.of("%s", refusal), "origins", a.origins(), origins)
				b.knows(u.ID, "strange", false)
			}
			_, err := use(b, u, f, by(now), store.Completion{Redeem: &ref, Create: &store.NewSession{Session: strange}})
			b.ok(err) // so the refusals were due to the conditions
		}
		all["of parallel calls of "+name+" one creates a session"] = func(b *bench) {
			_, u, f, ref := start(b)
			lost := map[string]error{"enabling": store.ErrConflict, "a use": store.ErrUsed, "a recovery code": store.ErrNotFound}[name]
			won, tally := b.race(func(int) error {
				_, err := use(b, u, f, by(now), store.Completion{Redeem: &ref, Create: &store.NewSession{Session: raised(b.newSession(u.ID))}})
				return err
			}, lost)
			b.oneWon(won, tally, lost)
		}
	}
	return all
}

func contains(list []string, s string) bool {
	for _, other := range list {
		if other == s {
			return true
		}
	}
	return false
}

// factorOrder checks the origins of factors and recovery codes.
func factorOrder() checks {
	return checks{
		"enabling a factor and replacing recovery codes raise the sequence": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			b.ok(a.signInAs("one", "", by(now)))
			s := a.sessions["one"]
			one, pending := a.from("one"), b.newFactor(a.id)
			a.step("a pending factor", 0, func() error { return b.putFactor(pending) })
			e := enabling(pending, s)
			e.Change = bySession(s)
			a.step("enabling within a session", one, func() error { _, err := b.factors.EnableFactor(b.ctx(), e); return err }, "factor phone", "recovery")
			codes := store.PutRecoveryCodes{Change: by(now), UserID: a.id, Hashes: [][]byte{hashOf("n1"), hashOf("n2")}}
			a.step("recovery codes", 0, func() error { return b.factors.PutRecoveryCodes(b.ctx(), codes) }, "recovery")
			codes.Change = bySession(s)
			a.step("recovery codes within a session", one, func() error { return b.factors.PutRecoveryCodes(b.ctx(), codes) }, "recovery")
			pending.State = []byte("100")
			a.step("a use", 0, func() error { return b.useFactor(pending, "101") })
			pending.State = []byte("101")
			a.step("a use that raises a session", 0, func() error { _, err := b.raise(pending, "102", s.ID); return err })
			a.step("a recovery code", 0, func() error { _, err := b.recover(a.id, "n1"); return err })
			a.remove("a removal", 0, func() error { _, err := b.removeFactor(a.id, ""); return err }, []string{"factor phone", "recovery"})
			b.ok(b.putFactor(pending))
			b.ok(a.issue("enrolment", store.PurposeEnroll, by(now)))
			ref, sequence := a.tokens["enrolment"], a.origins()["token enrolment"].Sequence
			next := raised(b.newSession(a.id))
			a.sessions["two"] = next
			e = enablingAnew(pending, next)
			e.Redeem = &ref
			a.remove("enabling by an enrolment token, with a session", sequence, func() error { _, err := b.factors.EnableFactor(b.ctx(), e); return err },
				[]string{"token enrolment", "session one"}, "factor phone", "recovery", "session two")
			a.remove("a patch removes factors", 0, a.patch(by(now), store.UserPatch{DropFactors: true}), []string{"factor phone", "recovery"})
		},
		"factors that come with a user begin at 1": func(b *bench) {
			nu := b.newUser("ada@example.com")
			f := b.newFactor("")
			f.Origin = store.Origin{Sequence: 99, AddedBy: 99}
			nu.Factors = []store.Factor{f}
			u, err := b.create(nu)
			b.ok(err)
			b.begins(b.account(u), u, "factor phone")
			if b.admin == nil {
				return
			}
			row := store.ImportedRow{User: b.newUser("eve@example.com").User, PasswordHash: "hash", Factors: []store.Factor{b.newFactor("")}}
			row.User.EmailVerifiedAt, row.User.Identities = now, []store.Identity{b.identity("p", "1")}
			row.User.Identities[0].Origin, row.User.Sequence, row.User.PasswordAddedBy = f.Origin, 99, 99
			errs, err := b.admin.CreateUsers(b.ctx(), store.CreateUsers{Change: by(now), Users: []store.ImportedRow{row}})
			b.ok(err)
			equal(b, "results", errs, []error{nil})
			imported := newWorld(b).as(row.User.ID)
			b.begins(b.account(imported), imported, "factor phone", "identity 1", "Password", "EmailVerified")
		},
		"clocks that differ change no order of factors": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			b.ok(a.signInAs("one", "", by(now)))
			for i := range 4 {
				f, c := b.passkey(a.id, fmt.Sprint(i)), clocks[i%2]
				b.ok(b.factors.PutFactor(b.ctx(), store.PutFactor{Change: c, Factor: f}))
				e := enabling(f, a.sessions["one"])
				e.Change, e.Recovery = c, nil
				a.step("a factor", 0, func() error { _, err := b.factors.EnableFactor(b.ctx(), e); return err }, "factor "+f.Label)
			}
		},
	}
}

// handles checks User.Handle.
func handles() checks {
	return checks{
		"an account is found by its handle, and no other has it": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.User.Handle = "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm8"
			ada, err := b.create(nu)
			b.ok(err)
			b.user("eve@example.com") // has no handle
			b.user("bob@example.com")
			for _, key := range []store.UserKey{store.ByHandle(nu.User.Handle), store.ByID(ada.ID)} {
				got, err := b.User(b.ctx(), key)
				b.ok(err)
				equal(b.of("%+v", key), "User.ID", got.ID, ada.ID)
				equal(b.of("%+v", key), "User.Handle", got.Handle, nu.User.Handle)
			}
			for _, other := range []string{"zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm8", "unknown"} {
				_, err = b.User(b.ctx(), store.ByHandle(other))
				b.of("%q", other).is(err, store.ErrNotFound)
			}
			same := b.newUser("cleo@example.com")
			same.User.Handle = nu.User.Handle
			_, err = b.create(same)
			b.conflict(err, "handle")
			if b.admin != nil {
				errs, err := b.admin.CreateUsers(b.ctx(), store.CreateUsers{Change: by(now), Users: []store.ImportedRow{{User: same.User}}})
				b.ok(err)
				need(b, "number of results", len(errs), 1)
				b.conflict(errs[0], "handle")
			}
			_, err = b.update(ada.ID, store.UserPatch{DropCredentials: true, PasswordHash: ptr("x")})
			b.ok(err)
			got, err := b.User(b.ctx(), store.ByHandle(nu.User.Handle)) // other patches keep it
			b.ok(err)
			equal(b, "User.ID", got.ID, ada.ID)
			b.ok(b.delete(ada.ID))
			_, err = b.User(b.ctx(), store.ByHandle(nu.User.Handle))
			b.is(err, store.ErrNotFound)
		},
		"an account gets another handle": func(b *bench) {
			create := func(email, handle string) (store.User, error) {
				nu := b.newUser(email)
				nu.User.Handle = handle
				return b.create(nu)
			}
			ada, err := create("ada@example.com", "first")
			b.ok(err)
			eve, err := create("eve@example.com", "taken")
			b.ok(err)
			_, err = b.update(ada.ID, store.UserPatch{Handle: ptr("taken"), FullName: ptr("x")})
			b.conflict(err, "handle")
			b.stands(store.Credentials{User: ada})
			got, err := b.update(ada.ID, store.UserPatch{Handle: ptr("second"), DropCredentials: true, PasswordHash: ptr("x")})
			b.ok(err)
			equal(b, "User.Handle", got.Handle, "second")
			for handle, id := range map[string]string{"second": ada.ID, "taken": eve.ID} {
				got, err := b.User(b.ctx(), store.ByHandle(handle))
				b.ok(err)
				equal(b.of("%q", handle), "User.ID", got.ID, id)
			}
			_, err = b.User(b.ctx(), store.ByHandle("first"))
			b.is(err, store.ErrNotFound)
			_, err = create("bob@example.com", "first") // free again
			b.ok(err)
			_, err = b.update(ada.ID, store.UserPatch{Handle: ptr("second")}) // its own
			b.ok(err)
			for _, id := range []string{ada.ID, eve.ID} { // several accounts have none
				got, err = b.update(id, store.UserPatch{Handle: ptr("")})
				b.ok(err)
				equal(b, "User.Handle", got.Handle, "")
			}
		},
	}
}
