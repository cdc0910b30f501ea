package traces_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func kitLinkRows() map[string][]harness.Row {
	return map[string][]harness.Row{"kit link": kitLinks(), "kit made link": kitMadeLinks(), "kit invitation": kitInvitations()}
}

// linkTypes are all of them, and one that there is not.
func linkTypes() []host.LinkType {
	return []host.LinkType{host.LinkVerify, host.LinkReset, host.LinkMagicLink, host.LinkInvite, host.LinkCode, "other"}
}

// links is a link that an operator creates or sends.
func links(name string, k harness.Kind, t host.LinkType, send bool, to string, prepare func(s *harness.Scene)) harness.Row {
	verb := " is made "
	if send {
		verb = " is sent "
	}
	return kitRow(string(t)+verb+name, k, func(s *harness.Scene, kit host.Kit) asking {
		prepare(s)
		return func(ctx context.Context) (any, error) {
			c := kit.Change(ctx, harness.ByOperator())
			if !send {
				return kit.Link(ctx, &c, t, s.Id, to, host.LinkMaker{})
			}
			c.Idempotency = &store.Idempotency{Actor: "operator", Route: "POST /links", Key: "key" + s.Id, RequestHash: []byte("f"), ExpiresAt: s.Clock.Now().Add(time.Hour)}
			id, err := kit.SendLink(ctx, &c, &host.Send{}, t, s.Id, to)
			if err == nil {
				kit.Committed(ctx, c, nil)
			}
			return map[string]any{"id": id, "result": c.Idempotency.Result}, err
		}
	})
}

func kitLinks() (rows []harness.Row) {
	nothing := func(*harness.Scene) {}
	for _, t := range linkTypes() {
		for _, send := range []bool{false, true} {
			for _, k := range []harness.Kind{harness.OnAddress, harness.OnNumber, harness.OnIdentity, harness.OnStolen} {
				rows = append(rows, links("for one", k, t, send, "", nothing))
			}
			if t != host.LinkReset && t != host.LinkInvite { // the others have the same conditions
				continue
			}
			rows = append(rows,
				links("with a way back", harness.OnIdentity, t, send, harness.AppURL+"in", nothing),
				links("with a bad way back", harness.OnIdentity, t, send, "https://evil.test/", nothing),
				links("for a banned one", harness.OnIdentity, t, send, "", func(s *harness.Scene) {
					until := s.Clock.Now().Add(time.Hour)
					s.Patch(s.Id, store.UserPatch{BannedUntil: &until})
				}),
				links("for nobody", harness.OnIdentity, t, send, "", func(s *harness.Scene) { s.Id = "00000000-0000-7000-8000-000000000000" }),
			)
		}
	}
	return rows
}

// opens is the use of a link that an operator created, with a check of its maker.
func opens(name string, k harness.Kind, t host.LinkType, judge func(ctx context.Context, s *harness.Scene, maker host.LinkMaker, u auth.User) (host.Terms, error)) harness.Row {
	return kitRow(string(t)+" "+name, k, func(s *harness.Scene, kit host.Kit) asking {
		kit.CheckLinks(func(ctx context.Context, maker host.LinkMaker, u auth.User) (host.Terms, error) {
			return judge(ctx, s, maker, u)
		})
		c := kit.Change(s.T.Context(), harness.ByOperator())
		made, err := kit.Link(s.T.Context(), &c, t, s.Id, "", host.LinkMaker{})
		if err != nil {
			s.T.Fatal(err)
		}
		to, err := url.Parse(made.URL)
		if err != nil {
			s.T.Fatal(err)
		}
		token := to.Query().Get("token")
		path, body, within := "/verify-email", map[string]any{"token": token}, []harness.Header{}
		switch t {
		case host.LinkVerify:
			within = append(within, s.Authorization())
		case host.LinkReset, host.LinkInvite:
			path, body["new_password"] = "/reset-password", harness.OwnNew
		case host.LinkMagicLink:
			path = "/magic-link/verify"
		}
		return func(context.Context) (any, error) {
			a := s.Evil.Send("POST", path, body, within...)
			return map[string]any{"status": a.Status, "body": json.RawMessage(orNull(a.Body))}, nil
		}
	})
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

func kitMadeLinks() (rows []harness.Row) {
	for _, t := range linkTypes()[:4] {
		rows = append(rows,
			opens("of one who may", harness.OnIdentity, t, func(_ context.Context, _ *harness.Scene, maker host.LinkMaker, u auth.User) (host.Terms, error) {
				none := int64(0)
				return host.Terms{IfRoles: &none, IfUsers: []auth.UserAt{{ID: u.ID, CredentialRevision: &maker.CredentialRevision}}}, nil
			}),
			opens("of one who may no more", harness.OnIdentity, t, func(context.Context, *harness.Scene, host.LinkMaker, auth.User) (host.Terms, error) {
				return host.Terms{}, &auth.Error{Code: auth.CodeInvalidToken, Status: 400}
			}),
			opens("of one who loses it", harness.OnIdentity, t, func(context.Context, *harness.Scene, host.LinkMaker, auth.User) (host.Terms, error) {
				other := int64(7)
				return host.Terms{IfRoles: &other}, &auth.Error{Code: auth.CodeInvalidToken, Status: 400}
			}),
		)
	}
	return rows
}

func kitInvitations() (rows []harness.Row) {
	clean := func(name string, life time.Duration, edit func(s *harness.Scene, inv *host.Invitation)) harness.Row {
		return kitRow(name, harness.OnStolen, func(s *harness.Scene, kit host.Kit) asking {
			given := host.Invitation{Email: s.EvilMail, Roles: []string{"b", "a", "b"}, By: auth.Actor{Kind: store.ActorSystem, ID: "test"}}
			edit(s, &given)
			return func(ctx context.Context) (any, error) {
				inv, err := kit.CheckInvitation(given, life)
				if err != nil {
					return nil, err
				}
				c := kit.Change(ctx, harness.ByOperator())
				err = kit.Invite(ctx, &c, &host.Send{}, inv, nil)
				if err == nil {
					kit.Committed(ctx, c, nil)
				}
				return inv, err
			}
		})
	}
	nothing := func(*harness.Scene, *host.Invitation) {}
	rows = append(rows,
		clean("of an address", 0, nothing),
		clean("of no address", 0, func(_ *harness.Scene, inv *host.Invitation) { inv.Email = "" }),
		clean("of a bad address", 0, func(_ *harness.Scene, inv *host.Invitation) { inv.Email = "nobody" }),
		clean("with metadata", 0, func(_ *harness.Scene, inv *host.Invitation) { inv.Metadata = map[string]any{"a": "b"} }),
		clean("with too much metadata", 0, func(_ *harness.Scene, inv *host.Invitation) {
			inv.Metadata = map[string]any{"a": strings.Repeat("n", 64<<10)}
		}),
		clean("with a way back", 0, func(_ *harness.Scene, inv *host.Invitation) { inv.RedirectTo = harness.AppURL }),
		clean("with a bad way back", 0, func(_ *harness.Scene, inv *host.Invitation) { inv.RedirectTo = "https://evil.test/" }),
		clean("that was made before", 0, func(s *harness.Scene, inv *host.Invitation) { inv.CreatedAt = s.Clock.Now().Add(-time.Hour) }),
		clean("for the least time", 5*time.Minute, nothing),
		clean("for less", 5*time.Minute-time.Second, nothing),
		clean("for the most time", 30*24*time.Hour, nothing),
		clean("for more", 30*24*time.Hour+time.Second, nothing),
		clean("of an address that one waits at", 0, func(s *harness.Scene, _ *host.Invitation) { s.Invited(s.EvilMail) }),
	)
	waiting := func(name string, do func(ctx context.Context, s *harness.Scene, kit host.Kit, list []host.Invitation, hashes [][]byte) (any, error)) harness.Row {
		return kitRow(name, harness.OnStolen, func(s *harness.Scene, kit host.Kit) asking {
			s.Invited(s.EvilMail)
			s.Clock.Advance(time.Second)
			s.Invited("other-" + s.EvilMail)
			list, hashes, _, err := kit.Invitations(s.T.Context(), "", nil, 2)
			if err != nil {
				s.T.Fatal(err)
			}
			return func(ctx context.Context) (any, error) { return do(ctx, s, kit, list, hashes) }
		})
	}
	lists := func(id string, after *store.InvitationCursor, limit int) func(ctx context.Context, s *harness.Scene, kit host.Kit, list []host.Invitation, hashes [][]byte) (any, error) {
		return func(ctx context.Context, s *harness.Scene, kit host.Kit, all []host.Invitation, _ [][]byte) (any, error) {
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
				mails = append(mails, strings.ReplaceAll(inv.Email, s.EvilMail, "evil"))
			}
			return map[string]any{"list": mails, "hashes": len(hashes), "next": next}, err
		}
	}
	return append(rows,
		waiting("are listed", lists("", nil, 1)),
		waiting("are listed, the rest", lists("", &store.InvitationCursor{}, 1)),
		waiting("are listed, of one id", lists("second", nil, 3)),
		waiting("is withdrawn", func(ctx context.Context, _ *harness.Scene, kit host.Kit, _ []host.Invitation, hashes [][]byte) (any, error) {
			return nil, kit.WithdrawInvitation(ctx, kit.Change(ctx, harness.ByOperator()), hashes[0])
		}),
		waiting("is sent again", func(ctx context.Context, _ *harness.Scene, kit host.Kit, list []host.Invitation, hashes [][]byte) (any, error) {
			inv, err := kit.CheckInvitation(list[0], time.Hour)
			if err != nil {
				return nil, err
			}
			c := kit.Change(ctx, harness.ByOperator())
			return inv, kit.Invite(ctx, &c, &host.Send{}, inv, hashes[0])
		}),
	)
}
