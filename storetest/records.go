package storetest

import (
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// east is a zone that no stored time is in.
var east = time.FixedZone("east", 3600)

// abroad returns a copy of a value with every time in another zone and finer than stored
// times.
func abroad[T any](v T) T {
	var out T
	moved(reflect.ValueOf(v), reflect.ValueOf(&out).Elem())
	return out
}

func moved(from, to reflect.Value) {
	to.Set(from)
	switch t := from.Type(); {
	case t == reflect.TypeFor[time.Time]():
		if at, ok := from.Interface().(time.Time); ok && !at.IsZero() {
			to.Set(reflect.ValueOf(at.In(east).Add(7)))
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				moved(from.Field(i), to.Field(i))
			}
		}
	case t.Kind() == reflect.Pointer && !from.IsNil():
		to.Set(reflect.New(t.Elem()))
		moved(from.Elem(), to.Elem())
	case t.Kind() == reflect.Slice && !from.IsNil():
		to.Set(reflect.MakeSlice(t, from.Len(), from.Len()))
		for i := range from.Len() {
			moved(from.Index(i), to.Index(i))
		}
	}
}

// complete checks that every field of a record is set, except some, because zero would pass
// as stored.
func complete[T any](b *bench, v T, but ...string) {
	b.Helper()
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		if name := r.Type().Field(i).Name; r.Field(i).IsZero() != slices.Contains(but, name) {
			b.wrong(r.Type().Name()+"."+name, r.Field(i).Interface(), "a value, in the check that every member of it is kept")
		}
	}
}

// records checks that every field of each record is stored. Optional interfaces also store
// times in UTC and to the microsecond, from any zone.
func records() checks {
	return checks{
		"every member of a token is kept": func(b *bench) {
			t := store.Token{
				Purpose: store.PurposeInvitation, Hash: hashOf("link"), Subject: "subject", UserID: b.user("ada@example.com").ID, Data: []byte(`{"a":1}`),
				CreatedAt: now, ExpiresAt: now.Add(minute), MaxAttempts: 3, Code: hashOf("code"), CodeExpiresAt: now.Add(minute / 2), Origin: store.Origin{Sequence: 1},
			}
			complete(b, t, "Attempts")
			b.ok(b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t}))
			read := func(want store.Token) {
				b.Helper()
				got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.ok(err)
				equal(b, "Token", got, want)
			}
			read(t)
			guess := store.CodeAttempt{Change: proof(now), Purpose: t.Purpose, Subject: t.Subject, Hash: hashOf("wrong")}
			_, _, err := b.RedeemCode(b.ctx(), guess)
			b.is(err, store.ErrWrongCode)
			t.Attempts = 1
			read(t)
			used, u, err := b.RedeemToken(b.ctx(), store.Redemption{Change: proof(now), Purpose: t.Purpose, Hash: t.Hash})
			b.ok(err)
			equal(b, "Token, of RedeemToken", used, t)
			equal(b, "User.ID", u.ID, t.UserID)
			t.Hash, t.Attempts = hashOf("other"), 0
			b.ok(b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t}))
			guess.Hash = t.Code
			used, _, err = b.RedeemCode(b.ctx(), guess)
			b.ok(err)
			equal(b, "Token, of RedeemCode", used, t)
		},
		"every time of a user is kept": func(b *bench) {
			f := &filler{}
			nu := b.filled(f)
			first := store.Session{}
			b.ok(f.fill("Session", reflect.ValueOf(&first).Elem()))
			first.UserID, first.Counter, first.CreatedAt, first.IdleUntil, first.ExpiresAt = nu.User.ID, 0, now, now.Add(2*minute), now.Add(2*time.Hour)
			nu.Session = &first
			nu.User.BannedUntil = time.Time{} // a banned user has no session
			_, err := b.CreateUser(b.ctx(), store.CreateUser{Change: by(now), NewUser: nu})
			b.ok(err)
			nu.User.LastSignInAt = now
			want := store.Credentials{User: nu.User, PasswordHash: nu.PasswordHash, Notes: nu.Notes}
			b.reads("after CreateUser", want)
			got, _, err := b.Session(b.ctx(), first.ID, now)
			b.ok(err)
			first.Origin = store.Origin{Sequence: 1}
			equal(b, "Session", got, first)
			until := now.Add(-minute)
			p := store.UserPatch{BannedUntil: &until, EmailVerifiedAt: ptr(now.Add(us)), PhoneVerifiedAt: ptr(now.Add(2 * us))}
			after, err := b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(now.Add(3 * us)), UserID: nu.User.ID, Patch: p})
			b.ok(err)
			want.User.BannedUntil, want.User.EmailVerifiedAt, want.User.PhoneVerifiedAt, want.User.UpdatedAt = until, now.Add(us), now.Add(2*us), now.Add(3*us)
			b.sameFields("UpdateUser", after, want.User)
			b.reads("after UpdateUser", want)
			at := now.Add(minute)
			moved, _, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(at), SessionID: first.ID, IdleUntil: at.Add(time.Hour)})
			b.ok(err)
			first.Counter, first.RotatedAt, first.LastActiveAt, first.IdleUntil = 1, at, at, at.Add(time.Hour)
			equal(b, "Session, of AdvanceSession", moved, first)
		},
		"every time of a device is kept": func(b *bench) {
			u := b.user("ada@example.com")
			c := b.trusting(u.ID, "device", now.Add(time.Hour))
			_, err := b.CreateSession(b.ctx(), c)
			b.ok(err)
			key := store.ByID(u.ID)
			key.Device = "device"
			got, err := b.Credentials(b.ctx(), key)
			b.ok(err)
			equal(b, "Credentials.TrustedUntil", got.TrustedUntil, now.Add(time.Hour))
			equal(b, "Credentials.KnownDevice", got.KnownDevice, true)
		},
	}
}

// factorRecords checks the records of factors.
func factorRecords() checks {
	return checks{
		"every member of a factor is kept": func(b *bench) {
			u := b.user("ada@example.com")
			f := store.Factor{ID: b.id(), UserID: u.ID, Kind: store.FactorTOTP, Several: true, Required: true, Label: "phone", Credential: []byte("credential"), Secret: []byte("sealed"), State: []byte("7"), Enabled: true, CreatedAt: now, LastUsedAt: now, Origin: store.Origin{Sequence: 2, AddedBy: 1}}
			complete(b, f)
			f.LastUsedAt = time.Time{} // zero until a code is used
			sent := abroad(f)
			sent.Enabled = false
			b.ok(b.factors.PutFactor(b.ctx(), store.PutFactor{Change: abroad(by(now)), Factor: sent}))
			pending := f
			pending.Enabled = false
			b.has(pending, 0)
			s := b.newSession(u.ID)
			s.AAL = store.LevelAAL2
			_, err := b.factors.EnableFactor(b.ctx(), store.EnableFactor{
				Change: abroad(by(now)), UserID: u.ID, FactorID: f.ID, State: []byte("7"), Recovery: [][]byte{hashOf("1"), hashOf("2")}, Completion: store.Completion{Create: &store.NewSession{Session: abroad(s)}},
			})
			b.ok(err)
			b.has(f, 2)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, s)
			at := now.Add(minute)
			_, err = b.factors.UseFactor(b.ctx(), store.UseFactor{Change: abroad(by(at)), UserID: u.ID, FactorID: f.ID, State: f.State, NewState: []byte("8")})
			b.ok(err)
			f.State, f.LastUsedAt = []byte("8"), at
			b.has(f, 2)
		},
	}
}

// eventRecords checks the records of events.
func eventRecords() checks {
	return checks{
		"every member of an event is kept": func(b *bench) {
			var client, other store.Client
			f := &filler{}
			for _, c := range []*store.Client{&client, &other} {
				for i := range reflect.TypeFor[store.Client]().NumField() {
					v := reflect.ValueOf(c).Elem().Field(i)
					if v.Kind() == reflect.String {
						b.ok(f.fill("Client", v))
					}
				}
			}
			client.IP, other.IP = address(7), address(8)
			client.Device, other.Device = "", "" // events do not store it
			for _, e := range []store.Event{
				{
					Type: store.EventMessageFailed, Actor: store.Actor{Kind: store.ActorUser, ID: b.id(), SessionID: b.id()}, UserID: b.id(), SessionID: b.id(),
					SessionIDs: []string{b.id(), b.id()}, Method: "otp", Provider: "google", Message: store.KindMagicLink, Left: 7, Reason: "why", Client: client, Other: &other,
					Record: &store.Record{
						Actor: "ada", Target: "bob", RequestID: "request", ServerID: "server", Operation: "POST /users", Denied: true,
						Changes: map[string]store.FieldChange{"name": {Before: "a", After: map[string]any{"b": true}}},
					},
				},
				{Type: store.EventSignedIn, Actor: store.Actor{Kind: store.ActorKey, ID: b.id()}, Client: other},
				{Type: store.EventSignedIn, Actor: store.Actor{Kind: store.ActorSystem, ID: "task"}, Record: &store.Record{Operation: "x"}},
				{Type: store.EventSignedIn},
			} {
				if e.Other != nil {
					complete(b, *e.Record)
					complete(b, e, "ID", "At", "Err")
				}
				e.ID, e.At = b.id(), now
				b.ok(b.journal.AddEvents(b.ctx(), []store.Event{abroad(e)}))
				later := e
				later.ID = b.id()
				c := by(now)
				c.Events = []store.OutcomeEvent{{On: store.OutcomeDone, Event: abroad(later)}}
				_, err := b.CreateUser(b.ctx(), store.CreateUser{Change: c, NewUser: b.newUser("")})
				b.ok(err)
				for _, want := range []store.Event{e, later} {
					got, err := b.journal.Events(b.ctx(), store.EventQuery{ID: want.ID})
					b.ok(err)
					need(b, "number of events", len(got), 1)
					if want.UserID == "" && want.ID == later.ID {
						want.UserID = got[0].UserID // the new user
					}
					equal(b, "Event", got[0], want)
				}
			}
		},
	}
}

// outboxRecords checks the records of messages.
func outboxRecords(has *bench) checks {
	all := checks{
		"every member of a message is kept": func(b *bench) {
			u := b.user("ada@example.com")
			t := newToken("t", "s")
			b.token(t)
			m := store.SealedMessage{
				ID: b.id(), UserID: u.ID, Recipient: "to", Token: store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}, Body: []byte("sealed"),
				CreatedAt: now, NextAt: now.Add(us), ExpiresAt: now.Add(minute), Attempts: 1, Log: store.MessageLog{Kind: store.KindMagicLink, Channel: store.ChannelEmail, To: "a•", UserID: u.ID},
			}
			complete(b, m)
			sent := abroad(m)
			sent.Attempts = 0
			b.post(u.ID, sent)
			got, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: now.Add(us).In(east), Until: now.In(east).Add(minute/2 + 7), Limit: 2})
			b.ok(err)
			need(b, "number of messages", len(got), 1)
			m.NextAt = got[0].NextAt // the value before or after the claim
			got[0].Log = m.Log       // not returned to the sender
			equal(b, "SealedMessage", got[0], m)
			equal(b, "SealedMessage.NextAt is in UTC", got[0].NextAt.Location(), time.UTC)
			b.claims(now.Add(minute/2 - us))
			b.claims(now.Add(minute/2), m.ID)
		},
	}
	if has.journal == nil {
		return all
	}
	all["every member of a record of a message is kept"] = func(b *bench) {
		u := b.user("ada@example.com")
		m := b.message()
		m.CreatedAt = now
		m.Log = store.MessageLog{Kind: store.KindMagicLink, Channel: store.ChannelEmail, To: "a•", UserID: u.ID}
		b.post(u.ID, abroad(m))
		want := store.MessageRecord{ID: m.ID, MessageLog: m.Log, State: store.MessageFailed, Attempts: 3, CreatedAt: now, UpdatedAt: now.Add(us), Error: "why"}
		complete(b, want)
		complete(b, want.MessageLog)
		b.ok(b.journal.FinishMessage(b.ctx(), abroad(store.FinishMessage{ID: m.ID, State: want.State, At: want.UpdatedAt, Attempts: want.Attempts, Error: want.Error, KeepUntil: now.Add(minute)})))
		got := b.records(store.MessageQuery{ID: m.ID})
		need(b, "number of records", len(got), 1)
		equal(b, "MessageRecord", got[0], want)
		_, err := b.journal.FailedMessage(b.ctx(), m.ID, now.Add(minute-us).In(east))
		b.ok(err)
		_, err = b.journal.FailedMessage(b.ctx(), m.ID, now.Add(minute).In(east))
		b.is(err, store.ErrNotFound)
	}
	return all
}

// keyRecords checks the records of API keys.
func keyRecords() checks {
	return checks{
		"every member of a key is kept": func(b *bench) {
			s := b.session(b.user("").ID)
			k := store.APIKey{
				ID: b.id(), Name: "name", Public: true, Environment: "live", Hash: hashOf("k"), Scopes: []string{"a", "b"}, Networks: []string{"192.0.2.0/24"},
				CreatedBy: b.id(), Adopted: true, HourlyLimit: 7, Revision: 1, CreatedAt: now, ExpiresAt: now.Add(time.Hour), RevokedAt: now.Add(minute), LastUsedAt: now.Add(us), RotatedAt: now.Add(2 * us),
				PreviousHash: hashOf("before"), PreviousUntil: now.Add(3 * us), TextUser: s.UserID, TextSequence: 2,
			}
			_, err := b.project.PutKey(b.ctx(), store.PutKey{Change: abroad(by(now)), Key: store.APIKey{ID: k.ID, Hash: hashOf("before")}})
			b.ok(err)
			b.ok(b.project.UseKey(b.ctx(), k.ID, k.LastUsedAt.In(east).Add(7)))
			got, err := b.project.PutKey(b.ctx(), store.PutKey{Change: abroad(bySession(s)), Key: abroad(k), IfRevision: new(int64)})
			b.ok(err)
			equal(b, "APIKey, of PutKey", got, k)
			got, err = b.project.Key(b.ctx(), k.ID)
			b.ok(err)
			equal(b, "APIKey, of Key", got, k)
			list, err := b.project.Keys(b.ctx(), store.KeyQuery{Limit: 2})
			b.ok(err)
			equal(b, "APIKey, of Keys", list, []store.APIKey{k})
			complete(b, k)
		},
	}
}

// roleRecords checks the records of roles.
func roleRecords() checks {
	return checks{
		"every member of a role is kept": func(b *bench) {
			r := store.RolePermissions{Name: "name", Description: "what for", Permissions: []string{"a", "b"}, Privileged: true, CreatedAt: now, UpdatedAt: now}
			complete(b, r)
			put := func(at time.Time, n int64) {
				b.Helper()
				want := store.RoleTable{Revision: n, Roles: []store.RolePermissions{r}, Privileged: []string{r.Name}}
				got, err := b.project.PutRole(b.ctx(), store.PutRole{Change: abroad(by(at)), Role: abroad(r)})
				b.ok(err)
				equal(b, "RoleTable, of PutRole", got, want)
				got, err = b.project.Roles(b.ctx())
				b.ok(err)
				equal(b, "RoleTable, of Roles", got, want)
			}
			put(now, 1)
			r.UpdatedAt, r.Description, r.Permissions = now.Add(minute), "another", []string{"c"}
			put(now.Add(minute), 2)
		},
	}
}

// jobRecords checks the records of jobs.
func jobRecords() checks {
	return checks{
		"every member of a job is kept": func(b *bench) {
			j := store.Job{ID: b.id(), Kind: "kind", Actor: []byte("who"), Params: []byte("what"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
			sent := abroad(j)
			sent.State, sent.Chunks, sent.Next, sent.Rows, sent.Counts = store.JobDone, 7, 7, 7, store.JobCounts{Done: 7} // counted by the store
			b.ok(b.admin.PutJob(b.ctx(), sent))
			j.State = store.JobReceiving
			read := func(at time.Time) {
				b.Helper()
				got, err := b.admin.Job(b.ctx(), j.ID, at.In(east))
				b.ok(err)
				equal(b, "Job", got, j)
			}
			read(now)
			b.ok(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: j.ID, Rows: 2, Input: []byte("in"), Output: []byte("nothing yet")}))
			j.Chunks, j.Rows = 1, 2
			read(now)
			c, err := b.admin.JobChunk(b.ctx(), j.ID, 0)
			b.ok(err)
			c.Output = append([]byte(nil), c.Output...)
			equal(b, "JobChunk", c, store.JobChunk{JobID: j.ID, Rows: 2, Input: []byte("in")})
			got, err := b.admin.StartJob(b.ctx(), store.StartJob{Change: abroad(by(now)), ID: j.ID, ExpiresAt: now.In(east).Add(2*time.Hour + 7)})
			b.ok(err)
			j.State, j.LeaseUntil, j.ExpiresAt = store.JobRunning, now, now.Add(2*time.Hour)
			equal(b, "Job, of StartJob", got, j)
			read(now)
			got, err = b.admin.ClaimJob(b.ctx(), abroad(store.ClaimJob{Now: now, Until: now.Add(minute)}))
			b.ok(err)
			j.LeaseUntil = now.Add(minute)
			equal(b, "Job, of ClaimJob", got, j)
			read(now)
			got, err = b.admin.FinishJobChunk(b.ctx(), abroad(store.FinishJobChunk{JobID: j.ID, Output: []byte("out"), Counts: store.JobCounts{Done: 1, Skipped: 2, Failed: 3}, Now: now.Add(us), Until: now.Add(2 * minute)}))
			b.ok(err)
			j.State, j.Next, j.Counts, j.LeaseUntil, j.FinishedAt = store.JobDone, 1, store.JobCounts{Done: 1, Skipped: 2, Failed: 3}, now.Add(2*minute), now.Add(us)
			equal(b, "Job, of FinishJobChunk", got, j)
			complete(b, j)
			read(now.Add(2*time.Hour - us))
			_, err = b.admin.Job(b.ctx(), j.ID, now.Add(2*time.Hour))
			b.is(err, store.ErrNotFound)
			for n, want := range map[int]error{-1: store.ErrNotFound, 0: nil, 1: store.ErrNotFound} {
				_, err := b.admin.JobChunk(b.ctx(), j.ID, n)
				b.of("chunk %d", n).is(err, want)
			}
		},
		"a job of nothing is done once it is started": func(b *bench) {
			j := b.aJob(0)
			got, err := b.admin.StartJob(b.ctx(), store.StartJob{Change: abroad(by(now)), ID: j.ID, ExpiresAt: now.Add(2 * time.Hour)})
			b.ok(err)
			j.State, j.LeaseUntil, j.FinishedAt, j.ExpiresAt = store.JobDone, now, now, now.Add(2*time.Hour)
			equal(b, "Job", got, j)
		},
	}
}

// impersonationRecords checks the records of impersonations.
func impersonationRecords() checks {
	return checks{
		"every member of an impersonation is kept": func(b *bench) {
			operator, u := b.session(b.user("op@example.com").ID), b.whole()
			for range 2 {
				_, err := b.update(u.ID, store.UserPatch{PasswordHash: ptr(b.id())})
				b.ok(err)
			}
			_, err := b.update(operator.UserID, store.UserPatch{Roles: &[]string{"r"}})
			b.ok(err)
			if b.project != nil {
				_, err := b.putRole(store.RolePermissions{Name: "x"})
				b.ok(err)
			}
			i := b.acts(operator, u.ID)
			b.ok(b.admin.BeginImpersonation(b.ctx(), store.BeginImpersonation{Change: abroad(by(now)), Impersonation: abroad(i)}))
			of := func(id string) int64 {
				u, err := b.User(b.ctx(), store.ByID(id))
				b.ok(err)
				return u.CredentialRevision
			}
			i.Sequence = newWorld(b).as(u.ID).Sequence
			i.UserRevision, i.ActorRevision, i.RolesRevision = of(u.ID), of(operator.UserID), b.rolesRevision()
			got, whom, err := b.admin.Impersonation(b.ctx(), i.ID, now.In(east))
			b.ok(err)
			equal(b, "Impersonation", got, i)
			now, err := b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			b.sameUser(whom, now)
			list, err := b.admin.Impersonations(b.ctx(), u.ID, i.CreatedAt)
			b.ok(err)
			equal(b, "Impersonations", list, []store.Impersonation{i})
			if b.project != nil {
				complete(b, i)
			}
		},
	}
}

// settingsRecords checks the record of settings.
func settingsRecords() checks {
	return checks{
		"every member of settings is kept": func(b *bench) {
			c := store.PutSettings{Change: abroad(by(now)), Document: []byte(`{ "a": 1 }`)}
			got, err := b.project.PutSettings(b.ctx(), c)
			b.ok(err)
			want := store.StoredSettings{Revision: got.Revision, Document: c.Document, UpdatedAt: now}
			complete(b, want)
			equal(b, "StoredSettings, of PutSettings", got, want)
			got, err = b.project.Settings(b.ctx())
			b.ok(err)
			equal(b, "StoredSettings", got, want)
		},
	}
}

// address returns an example IP address.
func address(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }
