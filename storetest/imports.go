package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// importAll creates many users at now, and checks that there is one result for each.
func (b *bench) importAll(rows ...store.ImportedRow) []error {
	b.Helper()
	results, err := b.admin.CreateUsers(b.ctx(), store.CreateUsers{Change: by(now), Users: rows})
	b.ok(err)
	need(b, "number of results", len(results), len(rows))
	return results
}

// row describes a user to import.
func (b *bench) row(email string) store.ImportedRow {
	b.Helper()
	return store.ImportedRow{User: b.newUser(email).User}
}

// wholeRow describes user n with most fields set, and texts that a store may have to escape.
func (b *bench) wholeRow(n int) store.ImportedRow {
	b.Helper()
	row := b.row(fmt.Sprintf("Person%d@example.com", n))
	u := &row.User
	u.EmailVerifiedAt, u.Phone, u.PhoneVerifiedAt, u.FullName = now.Add(us), fmt.Sprintf("+4930%08d", n), now.Add(2*us), "Ada Ü. \\ \" 'q'"
	u.UserMetadata = map[string]any{"s": "ü", "n": 1.5, "z": nil, "m": map[string]any{"l": []any{"a", map[string]any{}}}}
	u.AppMetadata, u.Roles = map[string]any{"n": float64(n)}, []string{"b", "a,{\"}"}
	u.Identities = []store.Identity{b.identity("p", fmt.Sprint(n)), b.identity("q", fmt.Sprint(n))}
	u.CreatedAt, u.UpdatedAt, u.LastSignInAt, u.BannedUntil = now.Add(-minute), now, now.Add(-us), now.Add(minute)
	row.PasswordHash = fmt.Sprintf("hash %d", n)
	return row
}

// absent checks that nothing of a user is stored.
func (b *bench) absent(u store.User) {
	b.Helper()
	keys := []store.UserKey{store.ByID(u.ID)}
	for _, i := range u.Identities {
		keys = append(keys, store.ByIdentity(i.Provider, i.Subject))
	}
	for _, key := range keys {
		_, err := b.User(b.ctx(), key)
		b.is(err, store.ErrNotFound)
	}
}

func imports() checks {
	return checks{
		"all users come back as they went in": func(b *bench) {
			var rows []store.ImportedRow
			for n := range 30 {
				rows = append(rows, b.wholeRow(n), b.row(""))
			}
			for _, err := range b.importAll(rows...) {
				b.ok(err)
			}
			for _, row := range rows {
				b.stands(store.Credentials{User: row.User, PasswordHash: row.PasswordHash})
				for _, i := range row.User.Identities {
					u, err := b.User(b.ctx(), store.ByIdentity(i.Provider, i.Subject))
					b.ok(err)
					b.sameUser(u, row.User)
				}
			}
			equal(b, "number of results for nobody", len(b.importAll()), 0)
		},
		"every member of an imported user is kept": func(b *bench) {
			nu := b.filled(&filler{})
			b.ok(b.importAll(store.ImportedRow{User: nu.User, PasswordHash: nu.PasswordHash})[0])
			b.reads("after CreateUsers", store.Credentials{User: nu.User, PasswordHash: nu.PasswordHash})
		},
		"what they begin with is the store's to say": func(b *bench) {
			row := b.row("")
			row.User.Revision, row.User.CredentialRevision = 7, 8
			b.ok(b.importAll(row)[0])
			u, err := b.User(b.ctx(), store.ByID(row.User.ID))
			b.ok(err)
			equal(b, "User.Revision", u.Revision, 0)
			equal(b, "User.CredentialRevision", u.CredentialRevision, 0)
		},
		"an id of any version is kept": func(b *bench) {
			row := b.row("ada@example.com")
			row.User.ID = uuid.NewString()
			b.ok(b.importAll(row)[0])
			u, err := b.User(b.ctx(), store.ByEmail("ada@example.com"))
			b.ok(err)
			b.sameUser(u, row.User)
		},
		"one who is refused hinders nobody": func(b *bench) {
			first := b.wholeRow(0)
			b.ok(b.importAll(first)[0])
			for field, edit := range takes(b, first.User) {
				before, refused, after := b.wholeRow(1), b.wholeRow(2), b.wholeRow(3)
				for _, row := range []*store.ImportedRow{&before, &refused, &after} { // different users in each round
					row.User.Email, row.User.Phone = b.id()+"@example.com", ""
					row.User.Identities = []store.Identity{b.identity("p", b.id()), b.identity("q", b.id())}
				}
				edit(&refused.User)
				results := b.importAll(before, refused, after)
				b.ok(results[0])
				b.conflict(results[1], field)
				b.ok(results[2])
				b.stands(store.Credentials{User: before.User, PasswordHash: before.PasswordHash})
				b.stands(store.Credentials{User: after.User, PasswordHash: after.PasswordHash})
				if field != "id" {
					_, err := b.User(b.ctx(), store.ByID(refused.User.ID))
					b.is(err, store.ErrNotFound)
				}
				for _, i := range refused.User.Identities {
					u, err := b.User(b.ctx(), store.ByIdentity(i.Provider, i.Subject))
					if u.ID != first.User.ID {
						b.is(err, store.ErrNotFound)
					}
				}
			}
			b.stands(store.Credentials{User: first.User, PasswordHash: first.PasswordHash})
		},
		"of two in one call the first is created": func(b *bench) {
			for n, field := range []string{"id", "email", "phone", "identity"} {
				first, second := b.row(b.id()+"@example.com"), b.row(b.id()+"@example.com")
				first.User.Phone = fmt.Sprintf("+49%012d", n)
				first.User.Identities = []store.Identity{b.identity("p", b.id())}
				takes(b, first.User)[field](&second.User)
				third := b.row(b.id() + "@example.com")
				results := b.importAll(first, second, third)
				b.ok(results[0])
				b.conflict(results[1], field)
				b.ok(results[2])
				b.stands(store.Credentials{User: first.User})
				b.stands(store.Credentials{User: third.User})
			}
		},
		"one who is refused takes no value from those after": func(b *bench) {
			b.user("taken@example.com")
			refused, after := b.row("taken@example.com"), b.row("free@example.com")
			refused.User.Phone, after.User.Phone = "+4930123456", "+4930123456"
			results := b.importAll(refused, after)
			b.conflict(results[0], "email")
			b.ok(results[1])
			b.stands(store.Credentials{User: after.User})

			owner, second, third := b.row("a@example.com"), b.row("b@example.com"), b.row("b@example.com")
			owner.User.Identities = []store.Identity{b.identity("p", "s")}
			second.User.Identities = []store.Identity{b.identity("p", "s")}
			results = b.importAll(owner, second, third)
			b.ok(results[0])
			b.conflict(results[1], "identity")
			b.ok(results[2])
			b.absent(store.User{ID: second.User.ID})
			b.stands(store.Credentials{User: third.User})
		},
		"nobody has an identity twice": func(b *bench) {
			row := b.row("ada@example.com")
			row.User.Identities = []store.Identity{b.identity("p", "s"), b.identity("p", "s")}
			b.conflict(b.importAll(row)[0], "identity")
			b.absent(row.User)
		},
		"events come with those who are created": func(b *bench) {
			if b.journal == nil {
				return
			}
			b.user("taken@example.com")
			refused, made := b.row("taken@example.com"), b.row("free@example.com")
			for _, row := range []*store.ImportedRow{&refused, &made} {
				row.Events = []store.Event{{ID: b.id(), Type: store.EventUserImported, At: now}}
			}
			b.conflict(b.importAll(refused, made)[0], "email")
			c := store.CreateUsers{Change: by(now), Users: []store.ImportedRow{refused}}
			newWorld(b).witness(&c.Change)
			_, err := b.admin.CreateUsers(b.ctx(), c) // no user is created, so nothing is recorded
			b.ok(err)
			list, err := b.journal.Events(b.ctx(), store.EventQuery{})
			b.ok(err)
			need(b, "number of events", len(list), 1)
			equal(b, "Event.ID", list[0].ID, made.Events[0].ID)
			equal(b, "Event.UserID", list[0].UserID, made.User.ID)
		},
		"of parallel imports of the same users one wins each": func(b *bench) {
			const people, calls = 5, 8
			created := make([][]bool, calls)
			won, _ := b.raceOf(calls, func(call int) error {
				var rows []store.ImportedRow
				for n := range people {
					row := b.wholeRow(n)
					if call%3 == 1 { // only the same email addresses
						row.User.Phone, row.User.Identities = "", nil
					}
					if call%3 == 2 { // only the same identities
						row.User.Email, row.User.Phone = "", ""
					}
					rows = append(rows, row)
				}
				results, err := b.admin.CreateUsers(b.ctx(), store.CreateUsers{Change: by(now), Users: rows})
				for _, r := range results {
					if r != nil && !errors.Is(r, store.ErrConflict) {
						err = r
					}
					created[call] = append(created[call], r == nil)
				}
				return err
			})
			if won != calls {
				return // raceOf has reported the error
			}
			for n := range people {
				owners := map[string]int{"email": 0, "identity": 0}
				for call := range calls {
					if !created[call][n] {
						continue
					}
					if call%3 != 2 {
						owners["email"]++
					}
					if call%3 != 1 {
						owners["identity"]++
					}
				}
				if owners["email"] > 1 || owners["identity"] > 1 || owners["email"]+owners["identity"] == 0 {
					b.wrong(fmt.Sprintf("person %d: created by", n), owners, "once each at most, and once at least")
				}
				for kind, key := range map[string]store.UserKey{"email": store.ByEmail(fmt.Sprintf("person%d@example.com", n)), "identity": store.ByIdentity("p", fmt.Sprint(n))} {
					_, err := b.User(b.ctx(), key)
					equal(b.of("person %d by %s", n, kind), "found", err == nil, owners[kind] == 1)
				}
			}
		},
		"values are copies": func(b *bench) {
			row := b.wholeRow(1)
			row.User.UserMetadata = map[string]any{"k": "v"}
			b.ok(b.importAll(row)[0])
			row.User.UserMetadata["k"], row.User.Roles[0], row.User.Identities[0].Subject = "spoilt", "spoilt", "spoilt"
			u, err := b.User(b.ctx(), store.ByID(row.User.ID))
			b.ok(err)
			if u.UserMetadata["k"] != "v" || slices.Contains(u.Roles, "spoilt") || u.Identities[0].Subject == "spoilt" {
				b.wrong("User, after callers wrote into theirs,", u, "none of what they wrote")
			}
		},
		"an import makes second factors": func(b *bench) {
			if b.factors == nil {
				return
			}
			row := b.row("ada@example.com")
			f := b.newFactor("")
			row.Factors = []store.Factor{f}
			twice := b.row("eve@example.com")
			twice.Factors = []store.Factor{b.newFactor(""), b.newFactor("")}
			results := b.importAll(row, twice)
			b.ok(results[0])
			b.conflict(results[1], "factor")
			b.absent(twice.User)
			b.armedWith(row.User, f)
		},
		"an import keeps passkeys": func(b *bench) {
			if b.factors == nil {
				return
			}
			row := b.row("ada@example.com")
			one, two := b.passkey(row.User.ID, "one"), b.passkey(row.User.ID, "two")
			two.Required, two.CreatedAt, two.LastUsedAt = true, now.Add(time.Second), now.Add(time.Minute)
			row.Factors = []store.Factor{one, two}
			b.ok(b.importAll(row)[0])
			one.Enabled, two.Enabled = true, true
			one.Origin, two.Origin = store.Origin{Sequence: 1}, store.Origin{Sequence: 1}
			got, err := b.factors.Factors(b.ctx(), row.User.ID)
			b.ok(err)
			equal(b, "Factors", got, store.Factors{List: []store.Factor{one, two}})
			u, err := b.User(b.ctx(), store.ByID(row.User.ID))
			b.ok(err)
			equal(b, "User.MFAEnabled", u.MFAEnabled, true)
			row = b.row("eve@example.com")
			row.Factors = []store.Factor{b.passkey(row.User.ID, "three")}
			b.ok(b.importAll(row)[0])
			u, err = b.User(b.ctx(), store.ByID(row.User.ID))
			b.ok(err)
			equal(b, "User.MFAEnabled with a passkey that is not Required", u.MFAEnabled, false)
		},
	}
}

// takes returns edits that give a user a unique value of another one, by field.
func takes(b *bench, of store.User) map[string]func(*store.User) {
	b.Helper()
	return map[string]func(*store.User){
		"id":    func(u *store.User) { u.ID = of.ID },
		"email": func(u *store.User) { u.Email = of.Email },
		"phone": func(u *store.User) { u.Phone = of.Phone },
		"identity": func(u *store.User) {
			u.Identities = append(u.Identities, b.identity(of.Identities[0].Provider, of.Identities[0].Subject))
		},
	}
}

// armedWith checks a user that was created with a second factor.
func (b *bench) armedWith(u store.User, f store.Factor) {
	b.Helper()
	u.MFAEnabled = true
	b.stands(store.Credentials{User: u})
	f.UserID, f.Enabled = u.ID, true
	b.has(f, 0)
	_, err := b.signIn(b.newSession(u.ID))
	b.is(err, store.ErrMFARequired)
}

// born checks that CreateUser creates second factors.
func born() checks {
	return checks{
		"a user comes with second factors": func(b *bench) {
			nu := b.newUser("ada@example.com")
			f := b.newFactor("")
			nu.Factors = []store.Factor{f}
			u, err := b.create(nu)
			b.ok(err)
			equal(b, "User.MFAEnabled", u.MFAEnabled, true)
			equal(b, "User.Revision", u.Revision, 0)
			equal(b, "User.CredentialRevision", u.CredentialRevision, 0)
			b.armedWith(nu.User, f)
		},
		"a user who is refused has no second factor": func(b *bench) {
			b.user("ada@example.com")
			nu := b.newUser("ada@example.com")
			nu.Factors = []store.Factor{b.newFactor("")}
			_, err := b.create(nu)
			b.conflict(err, "email")
			nu = b.newUser("eve@example.com")
			nu.Factors = []store.Factor{b.newFactor(""), b.newFactor("")}
			_, err = b.create(nu)
			b.conflict(err, "factor")
			_, err = b.User(b.ctx(), store.ByEmail("eve@example.com"))
			b.is(err, store.ErrNotFound)
		},
		"a first session beside a second factor is at AAL2": func(b *bench) {
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			nu.Factors, nu.Session = []store.Factor{b.newFactor("")}, &s
			_, err := b.create(nu)
			b.is(err, store.ErrMFARequired)
			_, err = b.User(b.ctx(), store.ByID(nu.User.ID))
			b.is(err, store.ErrNotFound)
			s.AAL = store.LevelAAL2
			_, err = b.create(nu)
			b.ok(err)
		},
	}
}
