package traces_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// word is an optional value from an operator.
func word[T any](v T) *T { return &v }

// makes is an account that an operator creates, as the admin side does it.
func makes(name string, p func(s *harness.Scene) host.NewAccount, with func(ctx context.Context, s *harness.Scene, kit host.Kit, c *store.Change, nu *store.NewUser) error) harness.Row {
	return plainly(name, harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
		works := harness.HashWorks(s.Auth)
		account := p(s)
		nu, err := kit.NewAccount(ctx, &account)
		if err != nil {
			return nil, err
		}
		id := nu.User.ID
		if nu, err = kit.NewAccount(ctx, &account); err != nil { // as after ErrStale
			return nil, err
		}
		c := kit.Change(ctx, harness.ByOperator())
		if with != nil {
			if err := with(ctx, s, kit, &c, &nu); err != nil {
				return nil, err
			}
		}
		u, err := kit.Store().CreateUser(ctx, store.CreateUser{Change: c, NewUser: nu})
		if err != nil {
			return nil, kit.DuplicateError(err)
		}
		kit.Committed(ctx, c, nil)
		return map[string]any{"made": auth.ViewOf(u), "same": u.ID == id, "hashes": harness.HashWorks(s.Auth) - works}, nil
	})
}

// edits is an edit of the account by an operator.
func edits(name string, k harness.Kind, e func(s *harness.Scene) host.Edit) harness.Row {
	return plainly(name, k, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
		c := kit.Change(ctx, harness.ByOperator())
		p, err := kit.Edit(ctx, &c, user(s), e(s))
		if err != nil {
			return nil, err
		}
		u, err := kit.Store().UpdateUser(ctx, store.UpdateUser{Change: c, UserID: s.Id, Patch: p})
		if err == nil {
			kit.Committed(ctx, c, nil)
		}
		return map[string]any{"patch": p, "is": auth.ViewOf(u)}, err
	})
}

// patches is a patch of the account that the kit checked.
func patches(name string, k harness.Kind, judge func(ctx context.Context, s *harness.Scene, kit host.Kit, c *store.Change) (store.UserPatch, error)) harness.Row {
	return plainly(name, k, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
		c := kit.ChangeOf(ctx, harness.ByOperator(), user(s))
		p, err := judge(ctx, s, kit, &c)
		if err != nil {
			return nil, err
		}
		u, err := kit.Store().UpdateUser(ctx, store.UpdateUser{Change: c, UserID: s.Id, Patch: p})
		if err == nil {
			kit.Committed(ctx, c, nil)
			kit.MarkStale(u)
		}
		return map[string]any{"is": auth.ViewOf(u), "stale": s.Evil.Send("GET", "/me", nil, s.Authorization()).Status}, err
	})
}

func kitUserRows() map[string][]harness.Row {
	return map[string][]harness.Row{"kit new account": kitMakes(), "kit edit": kitEdits(), "kit account": kitAccounts(), "kit password": kitPasswords()}
}

func kitMakes() (rows []harness.Row) {
	mail := func(s *harness.Scene) auth.ImportUserParams { return auth.ImportUserParams{Email: s.EvilMail} }
	for name, edit := range map[string]func(s *harness.Scene, p *host.NewAccount){
		"of an address": func(*harness.Scene, *host.NewAccount) {},
		"whole": func(s *harness.Scene, p *host.NewAccount) {
			p.Phone, p.FullName, p.Password, p.Notes = s.EvilNumber, "Eve", harness.OwnNew, "a note"
			p.EmailVerified, p.PhoneVerified, p.Roles, p.BannedUntil = true, true, []string{"editor"}, s.Clock.Now().Add(time.Hour)
			p.UserMetadata, p.AppMetadata = map[string]any{"a": 1}, map[string]any{"b": 2}
			p.Identities = []auth.Identity{{Provider: "github", Subject: s.Git.Subject}}
		},
		"of a number": func(s *harness.Scene, p *host.NewAccount) { p.Email, p.Phone = "", s.EvilNumber },
		"of an identity": func(s *harness.Scene, p *host.NewAccount) {
			p.Email, p.Identities = "", []auth.Identity{{Provider: "github", Subject: s.Git.Subject}}
		},
		"of nothing":    func(_ *harness.Scene, p *host.NewAccount) { p.Email = "" },
		"of no address": func(_ *harness.Scene, p *host.NewAccount) { p.Email = "nobody" },
		"by a hash":     func(_ *harness.Scene, p *host.NewAccount) { p.PasswordHash = harness.BcryptHash },
		"by no hash":    func(_ *harness.Scene, p *host.NewAccount) { p.PasswordHash = "hash" },
		"by a password and a hash": func(_ *harness.Scene, p *host.NewAccount) {
			p.Password, p.PasswordHash = harness.OwnNew, harness.BcryptHash
		},
		"by a weak password":          func(_ *harness.Scene, p *host.NewAccount) { p.Password = "weak" },
		"by its address for password": func(_ *harness.Scene, p *host.NewAccount) { p.Password = p.Email },
		"by its number for password":  func(s *harness.Scene, p *host.NewAccount) { p.Phone, p.Password = s.EvilNumber, s.EvilNumber },
		"by its name for password": func(_ *harness.Scene, p *host.NewAccount) {
			p.FullName, p.Password = "Eve Evergreen", "Eve Evergreen"
		},
		"with long notes":              func(_ *harness.Scene, p *host.NewAccount) { p.Notes = strings.Repeat("n", 16<<10+1) },
		"with notes as long as can be": func(_ *harness.Scene, p *host.NewAccount) { p.Notes = strings.Repeat("n", 16<<10) },
		"with notes that are no text":  func(_ *harness.Scene, p *host.NewAccount) { p.Notes = "\xff" },
		"with notes of a zero":         func(_ *harness.Scene, p *host.NewAccount) { p.Notes = "a\x00" },
		"with a taken address":         func(s *harness.Scene, p *host.NewAccount) { p.Email = s.Email },
	} {
		rows = append(rows, makes(name, func(s *harness.Scene) host.NewAccount {
			p := host.NewAccount{ImportUser: host.ImportUser(mail(s))}
			edit(s, &p)
			return p
		}, nil))
	}
	plain := func(s *harness.Scene) host.NewAccount { return host.NewAccount{ImportUser: host.ImportUser(mail(s))} }
	return append(rows,
		makes("that has to be verified", plain, func(ctx context.Context, _ *harness.Scene, kit host.Kit, c *store.Change, nu *store.NewUser) error {
			permit, err := kit.PermitVerification(ctx, nu.User.Email)
			if err == nil {
				kit.SendVerification(ctx, c, nu, permit)
			}
			return err
		}),
		makes("that is invited", plain, func(ctx context.Context, _ *harness.Scene, kit host.Kit, c *store.Change, nu *store.NewUser) error {
			return kit.InviteNew(ctx, c, &host.Send{}, nu)
		}),
	)
}

func kitEdits() (rows []harness.Row) {
	for name, e := range map[string]func(s *harness.Scene) host.Edit{
		"of nothing":     func(*harness.Scene) host.Edit { return host.Edit{} },
		"of the name":    func(*harness.Scene) host.Edit { return host.Edit{FullName: word(" Eve ")} },
		"to no name":     func(*harness.Scene) host.Edit { return host.Edit{FullName: word("")} },
		"to a long name": func(*harness.Scene) host.Edit { return host.Edit{FullName: word(strings.Repeat("n", 1000))} },
		"of notes":       func(*harness.Scene) host.Edit { return host.Edit{Notes: word("noted")} },
		"to long notes":  func(*harness.Scene) host.Edit { return host.Edit{Notes: word(strings.Repeat("n", 16<<10+1))} },
		"of metadata": func(*harness.Scene) host.Edit {
			return host.Edit{UserMetadata: map[string]any{"a": "b"}, AppMetadata: map[string]any{"c": "d"}}
		},
		"to too much metadata": func(*harness.Scene) host.Edit {
			return host.Edit{UserMetadata: map[string]any{"a": strings.Repeat("n", 64<<10)}}
		},
		"to too much app metadata": func(*harness.Scene) host.Edit {
			return host.Edit{AppMetadata: map[string]any{"a": strings.Repeat("n", 64<<10)}}
		},
		"of the address": func(s *harness.Scene) host.Edit { return host.Edit{Email: &s.EvilMail} },
		"of the address, verified": func(s *harness.Scene) host.Edit {
			return host.Edit{Email: &s.EvilMail, EmailVerified: word(true)}
		},
		"of the address's case": func(s *harness.Scene) host.Edit {
			return host.Edit{Email: word(strings.ToUpper(s.Email[:3]) + s.Email[3:])}
		},
		"to the same address":     func(s *harness.Scene) host.Edit { return host.Edit{Email: &s.Email} },
		"to no address":           func(*harness.Scene) host.Edit { return host.Edit{Email: word("")} },
		"to a bad address":        func(*harness.Scene) host.Edit { return host.Edit{Email: word("nobody")} },
		"to no address, verified": func(*harness.Scene) host.Edit { return host.Edit{Email: word(""), EmailVerified: word(true)} },
		"to verified":             func(*harness.Scene) host.Edit { return host.Edit{EmailVerified: word(true)} },
		"to not verified":         func(*harness.Scene) host.Edit { return host.Edit{EmailVerified: word(false)} },
		"of the number":           func(s *harness.Scene) host.Edit { return host.Edit{Phone: &s.EvilNumber} },
		"of the number, verified": func(s *harness.Scene) host.Edit {
			return host.Edit{Phone: &s.EvilNumber, PhoneVerified: word(true)}
		},
		"to no number":           func(*harness.Scene) host.Edit { return host.Edit{Phone: word("")} },
		"to a bad number":        func(*harness.Scene) host.Edit { return host.Edit{Phone: word("1")} },
		"to a verified number":   func(*harness.Scene) host.Edit { return host.Edit{PhoneVerified: word(true)} },
		"from address to number": func(s *harness.Scene) host.Edit { return host.Edit{Email: word(""), Phone: &s.EvilNumber} },
		"to neither":             func(*harness.Scene) host.Edit { return host.Edit{Email: word(""), Phone: word("")} },
	} {
		rows = append(rows, edits(name, harness.OnStolen, e))
		if slices.Contains([]string{"of the address", "of the number", "to no address", "to no number", "to neither", "to verified"}, name) { // the rest depends on the account
			rows = append(rows, edits(name, harness.OnAddress, e), edits(name, harness.OnNumber, e), edits(name, harness.OnIdentity, e))
		}
	}
	return append(rows, kitRow("of the name of one made nobody's", harness.OnStolen, func(s *harness.Scene, kit host.Kit) asking {
		if _, err := kit.Anonymize(s.T.Context(), kit.Change(s.T.Context(), harness.ByOperator()), user(s), "nobody"); err != nil {
			s.T.Fatal(err)
		}
		return func(ctx context.Context) (any, error) {
			c := kit.Change(ctx, harness.ByOperator())
			return kit.Edit(ctx, &c, user(s), host.Edit{FullName: word("Nobody")})
		}
	}))
}

func kitAccounts() []harness.Row {
	reads := func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
		return kit.Account(ctx, store.ByID(s.Id))
	}
	return append(harness.ForKinds(plainly("is read", "", reads), harness.OnAddress, harness.OnNumber, harness.OnIdentity, harness.OnStolen),
		kitRow("with a factor and an address to come is read", harness.OnStolen, func(s *harness.Scene, kit host.Kit) asking {
			s.Enrols()
			s.Evil.Send("PATCH", "/me", map[string]any{"email": s.EvilMail, "totp_code": s.Code(s.Secret, 0)}, s.Authorization()).Want(200)
			return func(ctx context.Context) (any, error) { return reads(ctx, s, kit) }
		}),
		plainly("that is none is read", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			return kit.Account(ctx, store.ByEmail(s.EvilMail))
		}),
		plainly("is unlocked", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			fill, _, err := kit.Unlock(ctx, user(s))
			return len(fill), err
		}),
		plainly("is forgiven its failures", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			kit.ResetFailures(ctx, user(s))
			return nil, nil
		}),
		plainly("is exported", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) { return kit.Export(ctx, s.Id) }),
		plainly("that is none is exported", harness.OnStolen, func(ctx context.Context, _ *harness.Scene, kit host.Kit) (any, error) {
			return kit.Export(ctx, "00000000-0000-7000-8000-000000000000")
		}),
		kitRow("is made nobody's", harness.OnStolen, func(s *harness.Scene, kit host.Kit) asking {
			s.Patch(s.Id, store.UserPatch{Phone: &s.Number})
			return func(ctx context.Context) (any, error) {
				u, err := kit.Anonymize(ctx, kit.Change(ctx, harness.ByOperator()), user(s), "nobody")
				return auth.ViewOf(u), err
			}
		}),
		plainly("of a number is made nobody's", harness.OnNumber, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			u, err := kit.Anonymize(ctx, kit.Change(ctx, harness.ByOperator()), user(s), "nobody")
			return auth.ViewOf(u), err
		}),
		plainly("is deleted", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			return nil, kit.DeleteUser(ctx, user(s), store.DeleteUser{Change: kit.Change(ctx, harness.ByOperator()), UserID: s.Id})
		}),
	)
}

func kitPasswords() (rows []harness.Row) {
	for name, p := range map[string]*string{"none": nil, "an empty one": word(""), "a weak one": word("weak"), "the same one": word(harness.OwnPassword), "another": word(harness.OwnNew)} {
		rows = append(rows, patches("to "+name, harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit, _ *store.Change) (store.UserPatch, error) {
			return kit.PasswordPatch(ctx, user(s), p)
		}))
	}
	for name, hash := range map[string]string{"a hash": harness.BcryptHash, "no hash": "hash", "the same hash": ""} {
		rows = append(rows, patches("to "+name, harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit, c *store.Change) (p store.UserPatch, err error) {
			if hash == "" {
				had, err := s.Tap.Inner().Credentials(ctx, store.ByID(s.Id))
				if err != nil {
					return p, err
				}
				err = kit.AddPasswordHash(ctx, c, user(s), had.PasswordHash, &p)
				return p, err
			}
			err = kit.AddPasswordHash(ctx, c, user(s), hash, &p)
			return p, err
		}))
	}
	return append(rows,
		patches("without its identity", harness.OnIdentity, func(_ context.Context, s *harness.Scene, kit host.Kit, _ *store.Change) (store.UserPatch, error) {
			return kit.UnlinkPatch(user(s).Identities[0]), nil
		}),
		plainly("is another way in", harness.OnIdentity, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			return kit.CanSignInWithout(ctx, store.Credentials{User: user(s)}, "facebook")
		}),
		plainly("is a way in", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			return kit.CanSignInWithout(ctx, store.Credentials{User: user(s), PasswordHash: harness.BcryptHash}, "facebook")
		}),
	)
}
