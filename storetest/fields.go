package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// owned returns the fields of User that the store sets. Other checks compare the sequences.
func owned() []string {
	names := []string{"MFAEnabled", "Revision", "CredentialRevision", "Claims", "Sequence", "AcceptedSequence", "AcceptedUntil"}
	for name := range sequences(&store.User{}) {
		names = append(names, name+"Sequence", name+"AddedBy")
	}
	return names
}

// acts returns the fields of UserPatch that act instead of setting a value. Other checks
// test each.
func acts() []string {
	return []string{"Unlink", "Revoke", "DropTokens", "DropFactors", "DropDevices", "RevokeKeys", "DropCredentials", "KeepFactors", "Accept", "AcceptedUntil"}
}

// filler writes different valid values.
type filler struct{ n int }

// fill writes a valid value to v, a field of that name, that it did not have. It refuses
// types that it cannot fill, because an empty value would pass as a stored one.
func (f *filler) fill(name string, v reflect.Value) error {
	f.n++
	at := now.Add(time.Duration(f.n) * us)
	switch t := v.Type(); {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(at))
	case t == reflect.TypeFor[map[string]any]():
		v.Set(reflect.ValueOf(map[string]any{name: float64(f.n), "in": map[string]any{"l": []any{name}}}))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				return fmt.Errorf("%s.%s: storetest cannot fill it: teach filler.fill the type %s", name, t.Field(i).Name, t)
			}
			if err := f.fill(name+"."+t.Field(i).Name, v.Field(i)); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(t, 2, 2))
		for i := range v.Len() {
			if err := f.fill(name, v.Index(i)); err != nil {
				return err
			}
		}
	case t.PkgPath() != "": // the kind does not determine the valid values
		return f.unknown(name, t)
	case t.Kind() == reflect.String:
		v.SetString(f.text(name))
	case t.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(int64(f.n))
	case v.CanUint():
		v.SetUint(uint64(f.n)) //nolint:gosec // it counts up from 1
	case v.CanFloat():
		v.SetFloat(float64(f.n))
	case t == reflect.TypeFor[[]byte]():
		v.SetBytes([]byte(f.text(name)))
	default:
		return f.unknown(name, t)
	}
	return nil
}

func (*filler) unknown(name string, t reflect.Type) error {
	return fmt.Errorf("%s: storetest cannot fill it: teach filler.fill the type %s", name, t)
}

// text returns a valid value for a field of that name.
func (f *filler) text(name string) string {
	switch {
	case strings.HasSuffix(name, ".ID"):
		return uuid.NewString()
	case strings.HasSuffix(name, "Email"):
		return fmt.Sprintf("a%d@example.com", f.n)
	case strings.HasSuffix(name, "Phone"):
		return fmt.Sprintf("+4930123%04d", f.n)
	default:
		return fmt.Sprintf("%s %d", name, f.n)
	}
}

// filled describes a user with every field set except the fields of owned.
func (b *bench) filled(f *filler) store.NewUser {
	b.Helper()
	nu := store.NewUser{PasswordHash: "hash", Notes: "noted"}
	u := reflect.ValueOf(&nu.User).Elem()
	for i := range u.NumField() {
		if name := u.Type().Field(i).Name; !slices.Contains(owned(), name) {
			b.ok(f.fill("User."+name, u.Field(i)))
		}
	}
	return nu
}

// sameFields compares users field by field, except those of owned, and names the
// differences.
func (b *bench) sameFields(where string, got, want store.User) {
	b.Helper()
	g, w := reflect.ValueOf(withoutSequences(plain(got))), reflect.ValueOf(withoutSequences(plain(want)))
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		if !slices.Contains(owned(), name) {
			equal(b.of("%s", where), "User."+name, g.Field(i).Interface(), w.Field(i).Interface())
		}
	}
}

// reads compares a user with the result of every read.
func (b *bench) reads(where string, want store.Credentials) {
	b.Helper()
	u, err := b.User(b.ctx(), store.ByID(want.User.ID))
	b.of("%s: User.ID %q", where, want.User.ID).ok(err)
	b.sameFields(where+": User", u, want.User)
	c, err := b.Credentials(b.ctx(), store.ByID(want.User.ID))
	b.ok(err)
	b.sameFields(where+": Credentials", c.User, want.User)
	equal(b.of("%s", where), "Credentials.PasswordHash", c.PasswordHash, want.PasswordHash)
	equal(b.of("%s", where), "Credentials.Notes", c.Notes, want.Notes)
}

// set fills one field of a patch and applies it to c.
func (b *bench) set(f *filler, p *store.UserPatch, name string, c *store.Credentials) {
	b.Helper()
	member, to := reflect.ValueOf(p).Elem().FieldByName(name), reflect.ValueOf(&c.User).Elem().FieldByName(name)
	switch name {
	case "PasswordHash", "Rehash":
		to = reflect.ValueOf(&c.PasswordHash).Elem()
	case "Notes":
		to = reflect.ValueOf(&c.Notes).Elem()
	case "Link": // added to the other identities
		p.Link = &store.Identity{}
		b.ok(f.fill("UserPatch.Link", reflect.ValueOf(p.Link).Elem()))
		c.User.Identities = append(slices.Clone(c.User.Identities), *p.Link)
		return
	}
	value := member
	if member.Kind() == reflect.Pointer {
		member.Set(reflect.New(member.Type().Elem()))
		value = member.Elem()
	}
	if !to.IsValid() || to.Type() != value.Type() {
		b.wrong("UserPatch."+name, "no member of User", "bench.set to say what it makes of one, or acts to name it, and a check of it")
		b.FailNow()
	}
	value.Set(to) // fill writes a different value
	b.ok(f.fill("UserPatch."+name, value))
	to.Set(value)
}

// fields checks every field of User and UserPatch.
func fields() checks {
	return checks{
		"every member of a new user is kept": func(b *bench) {
			nu := b.filled(&filler{})
			got, err := b.create(nu)
			b.ok(err)
			b.sameFields("CreateUser", got, nu.User)
			b.reads("after CreateUser", store.Credentials{User: nu.User, PasswordHash: nu.PasswordHash, Notes: nu.Notes})
			s := b.newSession(nu.User.ID)
			s.CreatedAt = now.Add(time.Second) // after the ban
			_, err = b.signIn(s)
			b.ok(err)
			nu.User.LastSignInAt = s.CreatedAt
			_, got, err = b.Session(b.ctx(), s.ID, s.CreatedAt)
			b.ok(err)
			b.sameFields("Session", got, nu.User)
		},
		"every member of a session is kept": func(b *bench) {
			u := b.user("ada@example.com")
			var s store.Session
			b.ok((&filler{}).fill("Session", reflect.ValueOf(&s).Elem()))
			s.UserID, s.Counter = u.ID, 7
			same := func(where string, got store.Session) {
				b.Helper()
				g, w := reflect.ValueOf(got), reflect.ValueOf(s)
				for i := range g.NumField() {
					equal(b.of("%s", where), "Session."+g.Type().Field(i).Name, g.Field(i).Interface(), w.Field(i).Interface())
				}
			}
			reads := func(where string) {
				b.Helper()
				got, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				same(where+": Session", got)
				list, err := b.Sessions(b.ctx(), u.ID, now)
				b.ok(err)
				need(b.of("%s", where), "number of sessions", len(list), 1)
				same(where+": Sessions", list[0])
			}
			_, err := b.signIn(s)
			b.ok(err)
			s.Origin = store.Origin{Sequence: 2}
			reads("after CreateSession")
			at := now.Add(us)
			got, _, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(at), SessionID: s.ID, Counter: 7, IdleUntil: now.Add(time.Hour)})
			b.ok(err)
			s.Counter, s.RotatedAt, s.LastActiveAt, s.IdleUntil = 8, at, at, now.Add(time.Hour)
			same("AdvanceSession", got)
			reads("after AdvanceSession")
			nu := b.newUser("bob@example.com")
			b.ok((&filler{n: 100}).fill("Session", reflect.ValueOf(&s).Elem()))
			u.ID, s.UserID, s.Counter, nu.Session = nu.User.ID, nu.User.ID, 0, &s
			_, err = b.create(nu)
			b.ok(err)
			s.Origin = store.Origin{Sequence: 1}
			reads("after CreateUser")
		},
		"every member of a patch is applied": func(b *bench) {
			f := &filler{}
			nu := b.filled(f)
			_, err := b.create(nu)
			b.ok(err)
			want := store.Credentials{User: nu.User, PasswordHash: nu.PasswordHash, Notes: nu.Notes}
			apply := func(what string, p store.UserPatch) {
				b.Helper()
				f.n++
				want.User.UpdatedAt = now.Add(minute + time.Duration(f.n)*us)
				got, err := b.updateAt(want.User.UpdatedAt, want.User.ID, p)
				b.of("%s", what).ok(err)
				b.sameFields(what+": UpdateUser", got, want.User)
				b.reads("after "+what, want)
				if b.Failed() { // the next patches would report the same again
					b.FailNow()
				}
			}
			var together store.UserPatch
			var names []string
			for i := range reflect.TypeFor[store.UserPatch]().NumField() {
				name := reflect.TypeFor[store.UserPatch]().Field(i).Name
				if slices.Contains(acts(), name) {
					continue
				}
				var alone store.UserPatch
				b.set(f, &alone, name, &want)
				apply("UserPatch."+name, alone)
				if name != "Rehash" { // no effect next to PasswordHash
					names = append(names, name)
				}
			}
			for _, name := range names {
				b.set(f, &together, name, &want)
			}
			apply("UserPatch, all at once", together)
		},
	}
}
