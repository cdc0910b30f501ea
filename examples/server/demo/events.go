package demo

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// planEvents plans the things that happen once.
func (s *service) planEvents() {
	s.plan(29, 9, 0, "first owner", func() error {
		_, err := s.adm.GrantByAddress(s.ctx, admin.System("setup").Accepting(), owner, auth.RoleOwner)
		return err
	})
	s.plan(29, 9, 20, "role", s.by(owner, http.MethodPost, "/admin/roles", fields{"name": "editor", "description": "Writes and publishes notes.", "permissions": []string{"notes.*"}}))
	s.plan(29, 10, 40, "import", func() error { return s.bring(s.formerMembers()) })
	var accepting, joining string // tokens of links
	s.plan(29, 16, 0, "admin", func() (err error) {
		if err = s.grant(owner, adminName, admin.RoleAdmin); err == nil {
			accepting, _, err = s.mailed(adminName, auth.KindInvitation)
		}
		return err
	})
	s.plan(29, 16, 12, "acceptance", func() error { return s.accept(s.person(adminName), accepting) })
	for i, email := range []string{"clara.jensen@example.com", "mateo.alvarez@example.com", "yuki.tanabe@example.com"} {
		s.plan(25, 15, 10+i, "editor", func() error { return s.grant(owner, email, "editor") })
	}
	s.plan(22, 9, 40, "invitation", func() (err error) {
		if err = s.invite(adminName, support, admin.RoleSupport, 7)(); err == nil {
			joining, _, err = s.mailed(support, auth.KindInvitation)
		}
		return err
	})
	s.plan(22, 10, 25, "acceptance", func() error { return s.accept(s.person(support), joining) })
	s.plan(20, 14, 5, "invitation", s.invite(owner, "former.intern@example.net", "editor", 3)) // expires
	s.plan(3, 15, 30, "invitation", s.invite(owner, "judith.keller@example.com", "editor", 7))
	s.plan(1, 9, 15, "invitation", s.invite(adminName, "andrei.popescu@example.com", admin.RoleSupport, 7))
	s.plan(2, 10, 10, "support", func() error { return s.grant(adminName, waiting, admin.RoleSupport) })

	s.plan(24, 11, 0, "key", s.createKey(fields{"name": "Nightly export to the warehouse", "scopes": []string{admin.PermUsersRead, admin.PermAuditRead}}, nil))
	s.plan(18, 11, 30, "key", s.createKey(fields{"name": "Mobile app", "kind": "public"}, nil))
	s.plan(12, 9, 50, "key", s.createKey(fields{"name": "Billing", "scopes": []string{admin.PermUsersRead}, "cidrs": []string{"192.0.2.0/24"}}, nil))
	var leaked keyMade
	s.plan(9, 10, 0, "key", s.createKey(fields{"name": "Load test", "environment": "test", "scopes": []string{admin.PermUsersRead}}, &leaked))
	s.plan(8, 17, 45, "revoked key", func() error {
		return s.by(owner, http.MethodDelete, "/admin/keys/"+leaked.ID, fields{"reason": "It was pasted into a chat."})()
	})

	s.plan(6, 13, 35, "ban", s.of(adminName, banned, "ban", fields{"reason": "Advertising in notes, third warning."}))
	s.plan(5, 10, 30, "anonymised", func() error {
		p := s.person(leaving)
		p.sessions = nil
		return s.of(owner, leaving, "anonymize", fields{"reason": "Request by mail, ticket 1407."})()
	})
	s.plan(4, 15, 20, "impersonation", s.impersonate)
	s.plan(2, 11, 0, "failed import", func() error {
		return s.bring(strings.Join([]string{
			`{"email":"uta.brenner@example.org","full_name":"Uta Brenner","email_verified":true}`,
			`{"email":"` + owner + `","full_name":"H. Brandt"}`,
			`{"email":"stefan.krol@example.org","full_name":"Stefan Król","roles":["edtior"]}`,
			`{"email":"not an address","full_name":"Bertil Ek"}`}, "\n"))
	})

	for _, e := range []struct {
		ago   int
		email string
	}{{16, "oliver.prescott@example.org"}, {7, "diego.fuentes@example.org"}, {3, bouncing}} {
		s.plan(e.ago, 18, 40, "forgotten password", func() error { return s.forget(s.person(e.email)) })
	}
	s.plan(5, 19, 5, "lost phone", func() error { return s.useRecoveryCode(s.person("amara.nwosu@example.net")) })
	s.plan(11, 20, 15, "new codes", func() error { return s.newCodes(s.person("aisha.rahman@example.net")) })
	for n := range 14 {
		s.plan(9, 3, 10+n, "stuffing", s.unknown(n))
	}
	for n := range 100 { // with the limit of failures in a row
		s.plan(1, 1+n/50, n%50, "attack", s.attack(n))
	}

	recent := func(minutes int, name string, do func() error) {
		s.steps = append(s.steps, step{s.now.Add(-time.Duration(minutes) * time.Minute), name, do})
	}
	recent(20, "deferred message", func() error {
		return s.send(s.person(deferring), 'i', http.MethodPost, "/forgot-password", "", fields{"email": deferring}, nil)
	})
	recent(5, "owner", func() error { return s.resume(s.person(owner), 'i') })
}

// operate sends a request as a person who has just authenticated.
func (s *service) operate(email, method, path string, body, out any) error {
	p := s.person(email)
	dev := rune(p.on[0])
	had := p.sessions[dev] != nil
	if err := s.resume(p, dev); err != nil {
		return err
	}
	if had {
		var t tokens
		if err := s.send(p, dev, http.MethodPost, "/me/confirm", p.sessions[dev].access, fields{"totp_code": s.code(p)}, &t); err != nil {
			return err
		}
		p.sessions[dev].access = t.Access
	}
	return s.send(p, dev, method, path, p.sessions[dev].access, body, out)
}

// by is operate as a step.
func (s *service) by(email, method, path string, body any) func() error {
	return func() error { return s.operate(email, method, path, body, nil) }
}

// of is an operation on a person.
func (s *service) of(by, email, operation string, body any) func() error {
	return func() error {
		return s.operate(by, http.MethodPost, "/admin/users/"+s.person(email).id+"/"+operation, body, nil)
	}
}

func (s *service) grant(by, email, role string) error {
	return s.of(by, email, "roles/"+role, fields{"address": email})()
}

func (s *service) invite(by, email, role string, days int) func() error {
	return s.by(by, http.MethodPost, "/admin/invitations", fields{"email": email, "roles": []string{role}, "expires_in": days * 24 * 3600})
}

type keyMade struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// createKey creates an API key. A secret one is used once.
func (s *service) createKey(body fields, made *keyMade) func() error {
	return func() error {
		var k keyMade
		if err := s.operate(owner, http.MethodPost, "/admin/keys", body, &k); err != nil {
			return err
		}
		if made != nil {
			*made = k
		}
		if body["kind"] == "public" {
			return nil
		}
		h := http.Header{"User-Agent": {"warehouse-export/1.4"}, "X-Forwarded-For": {"192.0.2.40"}, "Authorization": {"Bearer " + k.Key}}
		return s.request(h, http.MethodGet, "/admin/users?limit=1", nil, nil)
	}
}

// formerMembers returns the rows of people who had an account at the service's predecessor.
func (s *service) formerMembers() string {
	var rows []string
	hash, err := bcrypt.GenerateFromPassword([]byte(s.password), bcrypt.MinCost)
	if err != nil {
		panic(err) // the password is not too long
	}
	for _, p := range s.people {
		since := s.Now().AddDate(-1-p.n%3, -p.n%12, 0).Format(time.RFC3339)
		row := fields{"email": p.email, "full_name": p.name, "email_verified": true, "email_verified_at": since, "created_at": since}
		switch p.by {
		case old:
			row["password_hash"] = string(hash)
		case github, google:
			row["identities"] = []fields{{"provider": string(p.by), "subject": fmt.Sprint(10427001 + 3391*p.n), "email": p.email, "created_at": since}}
		default:
			continue
		}
		raw, err := json.Marshal(row)
		if err != nil {
			panic(err)
		}
		rows = append(rows, string(raw))
	}
	return strings.Join(rows, "\n")
}

// bring imports rows as the owner, waits until that is done, and learns the ids.
func (s *service) bring(rows string) error {
	var job struct {
		ID string `json:"job_id"`
	}
	if err := s.operate(owner, http.MethodPost, "/admin/users/import", rows, &job); err != nil {
		return err
	}
	for {
		j, err := s.adm.Job(s.ctx, admin.System("demo"), job.ID)
		if err != nil {
			return err
		}
		if j.State == store.JobDone {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	for _, p := range s.people {
		if p.id != "" || p.email == "" {
			continue
		}
		u, err := s.adm.LookupUser(s.ctx, admin.System("demo"), store.ByEmail(p.email))
		if err != nil && !errors.Is(err, auth.CodeUserNotFound) {
			return err
		}
		p.id = u.ID
	}
	return nil
}

// accept accepts an invitation, or the permissions of an operator, by the mailed link.
func (s *service) accept(p *person, token string) error {
	body := fields{"token": token, "password": p.password, "full_name": p.name}
	if p.secret != "" {
		body["totp_code"] = s.code(p)
	}
	p.sessions = map[rune]*session{}
	var t tokens
	dev := rune(p.on[0])
	err := s.send(p, dev, http.MethodPost, "/invitations/accept", "", body, &t)
	return s.second(p, dev, t, err)
}

// impersonate looks at a member's account for a ticket.
func (s *service) impersonate() error {
	var acting struct {
		ID     string `json:"session_id"`
		Access string `json:"access_token"`
	}
	id := s.person("jonas.weidmann@example.org").id
	if err := s.operate(owner, http.MethodPost, "/admin/users/"+id+"/impersonate", fields{"reason": "Ticket 1432: notes are missing after a merge."}, &acting); err != nil {
		return err
	}
	p := s.person(owner)
	if err := s.send(p, 'm', http.MethodGet, "/me", acting.Access, nil, nil); err != nil {
		return err
	}
	s.moveTo(s.Now().Add(4 * time.Minute))
	return s.operate(owner, http.MethodDelete, "/admin/impersonations/"+acting.ID, fields{"reason": "The notes were found."}, nil)
}

// forget resets a password, unless the mailbox is full.
func (s *service) forget(p *person) error {
	dev := rune(p.on[0])
	if err := s.send(p, dev, http.MethodPost, "/forgot-password", "", fields{"email": p.email}, nil); err != nil || p.email == bouncing {
		return err
	}
	token, _, err := s.mailed(p.email, auth.KindResetPassword)
	if err != nil {
		return err
	}
	p.password, p.sessions = rand.Text(), map[rune]*session{}
	return s.send(p, dev, http.MethodPost, "/reset-password", "", fields{"token": token, "new_password": p.password}, nil)
}

// useRecoveryCode signs in without the phone that has the authenticator app.
func (s *service) useRecoveryCode(p *person) error {
	dev := rune(p.on[1])
	err := s.send(p, dev, http.MethodPost, "/login", "", fields{"email": p.email, "password": p.password}, nil)
	var asked *refused
	if !errors.As(err, &asked) || asked.Code != auth.CodeMFARequired {
		return err
	}
	var t tokens
	if err := s.send(p, dev, http.MethodPost, "/2fa/verify", "", fields{"mfa_token": asked.MFAToken, "recovery_code": p.recovery[0]}, &t); err != nil {
		return err
	}
	p.recovery = p.recovery[1:]
	p.keep(dev, t)
	return nil
}

func (s *service) newCodes(p *person) error {
	var made struct {
		Codes []string `json:"recovery_codes"`
	}
	err := s.operate(p.email, http.MethodPost, "/2fa/recovery-codes", nil, &made)
	p.recovery = made.Codes
	return err
}

// unknown tries a password of a leaked list at an address that has no account.
func (s *service) unknown(n int) func() error {
	return func() error {
		h := http.Header{"User-Agent": {"python-requests/2.32.3"}, "X-Forwarded-For": {"198.51.100.201"}}
		err := s.request(h, http.MethodPost, "/login", fields{"email": fmt.Sprintf("info%d@example.net", n+1), "password": "Summer2024!"}, nil)
		if is(err, auth.CodeInvalidCredentials) {
			return nil
		}
		return err
	}
}

// attack tries a password at one account, from changing addresses.
func (s *service) attack(n int) func() error {
	return func() error {
		h := http.Header{"User-Agent": {devices['w'].agent}, "X-Forwarded-For": {fmt.Sprintf("198.51.100.%d", 210+n%7)}}
		err := s.request(h, http.MethodPost, "/login", fields{"email": locked, "password": fmt.Sprint("Whitcombe", 1900+n)}, nil)
		if is(err, auth.CodeInvalidCredentials) {
			return nil
		}
		return err
	}
}
