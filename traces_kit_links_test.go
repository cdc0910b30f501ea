package auth_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func kitLinkRows() map[string][]row {
	return map[string][]row{"kit link": kitLinks(), "kit made link": kitMadeLinks(), "kit invitation": kitInvitations()}
}

// linkTypes are all of them, and one that there is not.
func linkTypes() []host.LinkType {
	return []host.LinkType{host.LinkVerify, host.LinkReset, host.LinkMagicLink, host.LinkInvite, host.LinkCode, "other"}
}

// links is a link that an operator makes, or has sent.
func links(name string, k kind, t host.LinkType, send bool, to string, prepare func(s *scene)) row {
	verb := " is made "
	if send {
		verb = " is sent "
	}
	return kitRow(string(t)+verb+name, k, func(s *scene, kit host.Kit) asking {
		prepare(s)
		return func(ctx context.Context) (any, error) {
			c := kit.Change(ctx, byOperator())
			if !send {
				return kit.Link(ctx, &c, t, s.id, to)
			}
			c.Idempotency = &store.Idempotency{Actor: "operator", Route: "POST /links", Key: "key" + s.id, RequestHash: []byte("f"), ExpiresAt: s.Clock.Now().Add(time.Hour)}
			id, err := kit.SendLink(ctx, &c, &host.Send{}, t, s.id, to)
			if err == nil {
				kit.Committed(ctx, c, nil)
			}
			return map[string]any{"id": id, "result": c.Idempotency.Result}, err
		}
	})
}

func kitLinks() (rows []row) {
	nothing := func(*scene) {}
	for _, t := range linkTypes() {
		for _, send := range []bool{false, true} {
			for _, k := range []kind{onAddress, onNumber, onIdentity, onStolen} {
				rows = append(rows, links("for one", k, t, send, "", nothing))
			}
			rows = append(rows,
				links("with a way back", onIdentity, t, send, appURL+"in", nothing),
				links("with a bad way back", onIdentity, t, send, "https://evil.test/", nothing),
				links("for a banned one", onIdentity, t, send, "", func(s *scene) {
					until := s.Clock.Now().Add(time.Hour)
					s.patch(s.id, store.UserPatch{BannedUntil: &until})
				}),
				links("for nobody", onIdentity, t, send, "", func(s *scene) { s.id = "00000000-0000-7000-8000-000000000000" }),
			)
		}
	}
	return rows
}

// opens is the use of a link that an operator made, whose maker is judged.
func opens(name string, k kind, t host.LinkType, judge func(ctx context.Context, s *scene, maker host.LinkMaker, u auth.User) (host.Terms, error)) row {
	return kitRow(string(t)+" "+name, k, func(s *scene, kit host.Kit) asking {
		kit.JudgeLinks(func(ctx context.Context, maker host.LinkMaker, u auth.User) (host.Terms, error) {
			return judge(ctx, s, maker, u)
		})
		c := kit.Change(s.t.Context(), byOperator())
		made, err := kit.Link(s.t.Context(), &c, t, s.id, "")
		if err != nil {
			s.t.Fatal(err)
		}
		to, err := url.Parse(made.URL)
		if err != nil {
			s.t.Fatal(err)
		}
		token := to.Query().Get("token")
		path, body := "/verify-email", map[string]any{"token": token}
		switch t {
		case host.LinkReset, host.LinkInvite:
			path, body["new_password"] = "/reset-password", ownNew
		case host.LinkMagicLink:
			path = "/magic-link/verify"
		}
		return func(context.Context) (any, error) {
			a := s.evil.send("POST", path, body)
			return map[string]any{"status": a.status, "body": json.RawMessage(orNull(a.body))}, nil
		}
	})
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

func kitMadeLinks() (rows []row) {
	for _, t := range linkTypes()[:4] {
		rows = append(rows,
			opens("of one who may", onIdentity, t, func(_ context.Context, _ *scene, maker host.LinkMaker, u auth.User) (host.Terms, error) {
				none := int64(0)
				return host.Terms{IfRoles: &none, IfUsers: []auth.UserAt{{ID: u.ID, CredentialRevision: &maker.CredentialRevision}}}, nil
			}),
			opens("of one who may no more", onIdentity, t, func(context.Context, *scene, host.LinkMaker, auth.User) (host.Terms, error) {
				return host.Terms{}, &auth.Error{Code: auth.CodeInvalidToken, Status: 400}
			}),
			opens("of one who loses it", onIdentity, t, func(context.Context, *scene, host.LinkMaker, auth.User) (host.Terms, error) {
				other := int64(7)
				return host.Terms{IfRoles: &other}, &auth.Error{Code: auth.CodeInvalidToken, Status: 400}
			}),
		)
	}
	return rows
}

func kitInvitations() (rows []row) {
	clean := func(name string, life time.Duration, edit func(s *scene, inv *host.Invitation)) row {
		return kitRow(name, onStolen, func(s *scene, kit host.Kit) asking {
			given := host.Invitation{Email: s.evilMail, Roles: []string{"b", "a", "b"}, By: auth.Actor{Kind: store.ActorSystem, ID: "test"}}
			edit(s, &given)
			return func(ctx context.Context) (any, error) {
				inv, err := kit.CleanInvitation(given, life)
				if err != nil {
					return nil, err
				}
				c := kit.Change(ctx, byOperator())
				err = kit.Invite(ctx, &c, &host.Send{}, inv, nil)
				if err == nil {
					kit.Committed(ctx, c, nil)
				}
				return inv, err
			}
		})
	}
	nothing := func(*scene, *host.Invitation) {}
	rows = append(rows,
		clean("of an address", 0, nothing),
		clean("of no address", 0, func(_ *scene, inv *host.Invitation) { inv.Email = "" }),
		clean("of a bad address", 0, func(_ *scene, inv *host.Invitation) { inv.Email = "nobody" }),
		clean("with metadata", 0, func(_ *scene, inv *host.Invitation) { inv.Metadata = map[string]any{"a": "b"} }),
		clean("with too much metadata", 0, func(_ *scene, inv *host.Invitation) { inv.Metadata = map[string]any{"a": strings.Repeat("n", 64<<10)} }),
		clean("with a way back", 0, func(_ *scene, inv *host.Invitation) { inv.RedirectTo = appURL }),
		clean("with a bad way back", 0, func(_ *scene, inv *host.Invitation) { inv.RedirectTo = "https://evil.test/" }),
		clean("that was made before", 0, func(s *scene, inv *host.Invitation) { inv.CreatedAt = s.Clock.Now().Add(-time.Hour) }),
		clean("for the least time", 5*time.Minute, nothing),
		clean("for less", 5*time.Minute-time.Second, nothing),
		clean("for the most time", 30*24*time.Hour, nothing),
		clean("for more", 30*24*time.Hour+time.Second, nothing),
		clean("of an address that one waits at", 0, func(s *scene, _ *host.Invitation) { s.invited(s.evilMail) }),
	)
	waiting := func(name string, do func(ctx context.Context, s *scene, kit host.Kit, list []host.Invitation, hashes [][]byte) (any, error)) row {
		return kitRow(name, onStolen, func(s *scene, kit host.Kit) asking {
			s.invited(s.evilMail)
			s.Clock.Advance(time.Second)
			s.invited("other-" + s.evilMail)
			list, hashes, _, err := kit.Invitations(s.t.Context(), "", nil, 2)
			if err != nil {
				s.t.Fatal(err)
			}
			return func(ctx context.Context) (any, error) { return do(ctx, s, kit, list, hashes) }
		})
	}
	lists := func(id string, after *store.InvitationCursor, limit int) func(ctx context.Context, s *scene, kit host.Kit, list []host.Invitation, hashes [][]byte) (any, error) {
		return func(ctx context.Context, s *scene, kit host.Kit, all []host.Invitation, _ [][]byte) (any, error) {
			of := id
			if id == "second" {
				of = all[1].ID
			}
			at := after
			if at != nil {
				at = &store.InvitationCursor{CreatedAt: all[0].SentAt, Subject: all[0].ID}
			}
			list, hashes, next, err := kit.Invitations(ctx, of, at, limit)
			var mails []string
			for _, inv := range list {
				mails = append(mails, strings.ReplaceAll(inv.Email, s.evilMail, "evil"))
			}
			return map[string]any{"list": mails, "hashes": len(hashes), "next": next}, err
		}
	}
	return append(rows,
		waiting("are listed", lists("", nil, 1)),
		waiting("are listed, the rest", lists("", &store.InvitationCursor{}, 1)),
		waiting("are listed, of one id", lists("second", nil, 3)),
		waiting("is withdrawn", func(ctx context.Context, _ *scene, kit host.Kit, _ []host.Invitation, hashes [][]byte) (any, error) {
			return nil, kit.WithdrawInvitation(ctx, kit.Change(ctx, byOperator()), hashes[0])
		}),
		waiting("is sent again", func(ctx context.Context, _ *scene, kit host.Kit, list []host.Invitation, hashes [][]byte) (any, error) {
			inv, err := kit.CleanInvitation(list[0], time.Hour)
			if err != nil {
				return nil, err
			}
			c := kit.Change(ctx, byOperator())
			return inv, kit.Invite(ctx, &c, &host.Send{}, inv, hashes[0])
		}),
	)
}
