package auth_test

import (
	"context"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// word is what an operator says and could leave out.
func word[T any](v T) *T { return &v }

// makes is an account that an operator makes, as the admin side does it.
func makes(name string, p func(s *scene) host.NewAccount, with func(ctx context.Context, s *scene, kit host.Kit, c *store.Change, nu *store.NewUser) error) row {
	return plainly(name, onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
		works := auth.HashWorks(s.Auth)
		account := p(s)
		nu, err := kit.NewAccount(ctx, &account)
		if err != nil {
			return nil, err
		}
		id := nu.User.ID
		if nu, err = kit.NewAccount(ctx, &account); err != nil { // as after ErrStale
			return nil, err
		}
		c := kit.Change(ctx, byOperator())
		if with != nil {
			if err := with(ctx, s, kit, &c, &nu); err != nil {
				return nil, err
			}
		}
		u, err := kit.Store().CreateUser(ctx, store.CreateUser{Change: c, NewUser: nu})
		if err != nil {
			return nil, kit.Taken(err)
		}
		kit.Committed(ctx, c, nil)
		return map[string]any{"made": auth.ViewOf(u), "same": u.ID == id, "hashes": auth.HashWorks(s.Auth) - works}, nil
	})
}

// edits is an edit of the account by an operator.
func edits(name string, k kind, e func(s *scene) host.Edit) row {
	return plainly(name, k, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
		c := kit.Change(ctx, byOperator())
		p, err := kit.Edit(ctx, &c, s.user(), e(s))
		if err != nil {
			return nil, err
		}
		u, err := kit.Store().UpdateUser(ctx, store.UpdateUser{Change: c, UserID: s.id, Patch: p})
		if err == nil {
			kit.Committed(ctx, c, nil)
		}
		return map[string]any{"patch": p, "is": auth.ViewOf(u)}, err
	})
}

// patches is a patch of the account that the kit judged.
func patches(name string, k kind, judge func(ctx context.Context, s *scene, kit host.Kit, c *store.Change) (store.UserPatch, error)) row {
	return plainly(name, k, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
		c := kit.ChangeOf(ctx, byOperator(), s.user())
		p, err := judge(ctx, s, kit, &c)
		if err != nil {
			return nil, err
		}
		u, err := kit.Store().UpdateUser(ctx, store.UpdateUser{Change: c, UserID: s.id, Patch: p})
		if err == nil {
			kit.Committed(ctx, c, nil)
			kit.Stale(u)
		}
		return map[string]any{"is": auth.ViewOf(u), "stale": s.evil.send("GET", "/me", nil, s.in()).status}, err
	})
}

func kitUserRows() map[string][]row {
	return map[string][]row{"kit new account": kitMakes(), "kit edit": kitEdits(), "kit account": kitAccounts(), "kit password": kitPasswords()}
}

func kitMakes() (rows []row) {
	mail := func(s *scene) auth.ImportUserParams { return auth.ImportUserParams{Email: s.evilMail} }
	for name, edit := range map[string]func(s *scene, p *host.NewAccount){
		"of an address": func(*scene, *host.NewAccount) {},
		"whole": func(s *scene, p *host.NewAccount) {
			p.Phone, p.FullName, p.Password, p.Notes = s.evilNumber, "Eve", ownNew, "a note"
			p.EmailVerified, p.PhoneVerified, p.Roles, p.BannedUntil = true, true, []string{"editor"}, s.Clock.Now().Add(time.Hour)
			p.UserMetadata, p.AppMetadata = map[string]any{"a": 1}, map[string]any{"b": 2}
			p.Identities = []auth.Identity{{Provider: "github", Subject: s.git.Subject}}
		},
		"of a number": func(s *scene, p *host.NewAccount) { p.Email, p.Phone = "", s.evilNumber },
		"of an identity": func(s *scene, p *host.NewAccount) {
			p.Email, p.Identities = "", []auth.Identity{{Provider: "github", Subject: s.git.Subject}}
		},
		"of nothing":                   func(_ *scene, p *host.NewAccount) { p.Email = "" },
		"of no address":                func(_ *scene, p *host.NewAccount) { p.Email = "nobody" },
		"by a hash":                    func(_ *scene, p *host.NewAccount) { p.PasswordHash = bcryptHash },
		"by no hash":                   func(_ *scene, p *host.NewAccount) { p.PasswordHash = "hash" },
		"by a password and a hash":     func(_ *scene, p *host.NewAccount) { p.Password, p.PasswordHash = ownNew, bcryptHash },
		"by a weak password":           func(_ *scene, p *host.NewAccount) { p.Password = "weak" },
		"by its address for password":  func(_ *scene, p *host.NewAccount) { p.Password = p.Email },
		"by its number for password":   func(s *scene, p *host.NewAccount) { p.Phone, p.Password = s.evilNumber, s.evilNumber },
		"by its name for password":     func(_ *scene, p *host.NewAccount) { p.FullName, p.Password = "Eve Evergreen", "Eve Evergreen" },
		"with long notes":              func(_ *scene, p *host.NewAccount) { p.Notes = strings.Repeat("n", 16<<10+1) },
		"with notes as long as can be": func(_ *scene, p *host.NewAccount) { p.Notes = strings.Repeat("n", 16<<10) },
		"with notes that are no text":  func(_ *scene, p *host.NewAccount) { p.Notes = "\xff" },
		"with notes of a zero":         func(_ *scene, p *host.NewAccount) { p.Notes = "a\x00" },
		"with a taken address":         func(s *scene, p *host.NewAccount) { p.Email = s.email },
	} {
		rows = append(rows, makes(name, func(s *scene) host.NewAccount {
			p := host.NewAccount{ImportUser: host.ImportUser(mail(s))}
			edit(s, &p)
			return p
		}, nil))
	}
	plain := func(s *scene) host.NewAccount { return host.NewAccount{ImportUser: host.ImportUser(mail(s))} }
	return append(rows,
		makes("that has to be verified", plain, func(ctx context.Context, _ *scene, kit host.Kit, c *store.Change, nu *store.NewUser) error {
			permit, err := kit.PermitVerification(ctx, nu.User.Email)
			if err == nil {
				kit.SendVerification(ctx, c, nu, permit)
			}
			return err
		}),
		makes("that is invited", plain, func(ctx context.Context, _ *scene, kit host.Kit, c *store.Change, nu *store.NewUser) error {
			return kit.InviteNew(ctx, c, &host.Send{}, nu)
		}),
	)
}

func kitEdits() (rows []row) {
	for name, e := range map[string]func(s *scene) host.Edit{
		"of nothing":     func(*scene) host.Edit { return host.Edit{} },
		"of the name":    func(*scene) host.Edit { return host.Edit{FullName: word(" Eve ")} },
		"to no name":     func(*scene) host.Edit { return host.Edit{FullName: word("")} },
		"to a long name": func(*scene) host.Edit { return host.Edit{FullName: word(strings.Repeat("n", 1000))} },
		"of notes":       func(*scene) host.Edit { return host.Edit{Notes: word("noted")} },
		"to long notes":  func(*scene) host.Edit { return host.Edit{Notes: word(strings.Repeat("n", 16<<10+1))} },
		"of metadata": func(*scene) host.Edit {
			return host.Edit{UserMetadata: map[string]any{"a": "b"}, AppMetadata: map[string]any{"c": "d"}}
		},
		"to too much metadata": func(*scene) host.Edit {
			return host.Edit{UserMetadata: map[string]any{"a": strings.Repeat("n", 64<<10)}}
		},
		"to too much app metadata": func(*scene) host.Edit {
			return host.Edit{AppMetadata: map[string]any{"a": strings.Repeat("n", 64<<10)}}
		},
		"of the address":           func(s *scene) host.Edit { return host.Edit{Email: &s.evilMail} },
		"of the address, verified": func(s *scene) host.Edit { return host.Edit{Email: &s.evilMail, EmailVerified: word(true)} },
		"of the address's case": func(s *scene) host.Edit {
			return host.Edit{Email: word(strings.ToUpper(s.email[:3]) + s.email[3:])}
		},
		"to the same address":     func(s *scene) host.Edit { return host.Edit{Email: &s.email} },
		"to no address":           func(*scene) host.Edit { return host.Edit{Email: word("")} },
		"to a bad address":        func(*scene) host.Edit { return host.Edit{Email: word("nobody")} },
		"to no address, verified": func(*scene) host.Edit { return host.Edit{Email: word(""), EmailVerified: word(true)} },
		"to verified":             func(*scene) host.Edit { return host.Edit{EmailVerified: word(true)} },
		"to not verified":         func(*scene) host.Edit { return host.Edit{EmailVerified: word(false)} },
		"of the number":           func(s *scene) host.Edit { return host.Edit{Phone: &s.evilNumber} },
		"of the number, verified": func(s *scene) host.Edit { return host.Edit{Phone: &s.evilNumber, PhoneVerified: word(true)} },
		"to no number":            func(*scene) host.Edit { return host.Edit{Phone: word("")} },
		"to a bad number":         func(*scene) host.Edit { return host.Edit{Phone: word("1")} },
		"to a verified number":    func(*scene) host.Edit { return host.Edit{PhoneVerified: word(true)} },
		"from address to number":  func(s *scene) host.Edit { return host.Edit{Email: word(""), Phone: &s.evilNumber} },
		"to neither":              func(*scene) host.Edit { return host.Edit{Email: word(""), Phone: word("")} },
	} {
		for _, k := range []kind{onAddress, onNumber, onIdentity, onStolen} {
			rows = append(rows, edits(name, k, e))
		}
	}
	return append(rows, kitRow("of the name of one made nobody's", onStolen, func(s *scene, kit host.Kit) asking {
		if _, err := kit.Anonymize(s.t.Context(), kit.Change(s.t.Context(), byOperator()), s.user(), "nobody"); err != nil {
			s.t.Fatal(err)
		}
		return func(ctx context.Context) (any, error) {
			c := kit.Change(ctx, byOperator())
			return kit.Edit(ctx, &c, s.user(), host.Edit{FullName: word("Nobody")})
		}
	}))
}

func kitAccounts() []row {
	reads := func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
		return kit.Account(ctx, store.ByID(s.id))
	}
	return append(forKinds(plainly("is read", "", reads), onAddress, onNumber, onIdentity, onStolen),
		kitRow("with a factor and an address to come is read", onStolen, func(s *scene, kit host.Kit) asking {
			s.enrols()
			s.evil.send("PATCH", "/me", map[string]any{"email": s.evilMail, "totp_code": s.code(s.secret, 0)}, s.in()).want(200)
			return func(ctx context.Context) (any, error) { return reads(ctx, s, kit) }
		}),
		plainly("that is none is read", onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			return kit.Account(ctx, store.ByEmail(s.evilMail))
		}),
		plainly("has limits", onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			keys, err := kit.LockKeys(ctx, s.user())
			return len(keys), err
		}),
		plainly("is forgiven its failures", onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			kit.ForgiveFailures(ctx, s.user())
			return nil, nil
		}),
		plainly("is exported", onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) { return kit.Export(ctx, s.id) }),
		plainly("that is none is exported", onStolen, func(ctx context.Context, _ *scene, kit host.Kit) (any, error) {
			return kit.Export(ctx, "00000000-0000-7000-8000-000000000000")
		}),
		kitRow("is made nobody's", onStolen, func(s *scene, kit host.Kit) asking {
			s.patch(s.id, store.UserPatch{Phone: &s.number})
			return func(ctx context.Context) (any, error) {
				u, err := kit.Anonymize(ctx, kit.Change(ctx, byOperator()), s.user(), "nobody")
				return auth.ViewOf(u), err
			}
		}),
		plainly("of a number is made nobody's", onNumber, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			u, err := kit.Anonymize(ctx, kit.Change(ctx, byOperator()), s.user(), "nobody")
			return auth.ViewOf(u), err
		}),
		plainly("is deleted", onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			return nil, kit.DeleteUser(ctx, s.user(), store.DeleteUser{Change: kit.Change(ctx, byOperator()), UserID: s.id})
		}),
	)
}

func kitPasswords() (rows []row) {
	for name, p := range map[string]*string{"none": nil, "an empty one": word(""), "a weak one": word("weak"), "the same one": word(ownPassword), "another": word(ownNew)} {
		rows = append(rows, patches("to "+name, onStolen, func(ctx context.Context, s *scene, kit host.Kit, _ *store.Change) (store.UserPatch, error) {
			return kit.PasswordOf(ctx, s.user(), p)
		}))
	}
	for name, hash := range map[string]string{"a hash": bcryptHash, "no hash": "hash", "the same hash": ""} {
		rows = append(rows, patches("to "+name, onStolen, func(ctx context.Context, s *scene, kit host.Kit, c *store.Change) (p store.UserPatch, err error) {
			if hash == "" {
				had, err := s.tap.Inner().Credentials(ctx, store.ByID(s.id))
				if err != nil {
					return p, err
				}
				err = kit.WithHash(ctx, c, s.user(), had.PasswordHash, &p)
				return p, err
			}
			err = kit.WithHash(ctx, c, s.user(), hash, &p)
			return p, err
		}))
	}
	return append(rows,
		patches("without its identity", onIdentity, func(_ context.Context, s *scene, kit host.Kit, _ *store.Change) (store.UserPatch, error) {
			return kit.Unlinking(s.user().Identities[0]), nil
		}),
		plainly("is another way in", onIdentity, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			return kit.OtherWayIn(ctx, store.Credentials{User: s.user()}, "facebook"), nil
		}),
		plainly("is a way in", onStolen, func(ctx context.Context, s *scene, kit host.Kit) (any, error) {
			return kit.OtherWayIn(ctx, store.Credentials{User: s.user(), PasswordHash: bcryptHash}, "facebook"), nil
		}),
	)
}
