package auth_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// The class: a stranger asks about an address or number. Whether there is an
// account, neither the answer tells, nor what they can make of it, whatever the
// store does and whenever they leave.

// question is a request that must not tell.
type question struct {
	name    string
	route   string
	confirm bool
	spends  map[string]string             // limits that differ, where nobody sees it, and why
	ask     func(s *scene) func() *answer // in the name of a stranger
}

func questions() []question {
	post := func(path string, body func(s *scene) map[string]any) func(*scene) func() *answer {
		return func(s *scene) func() *answer {
			b := body(s)
			return func() *answer { return s.evil.send("POST", path, b) }
		}
	}
	mail := func(more map[string]any) func(*scene) map[string]any {
		return func(s *scene) map[string]any {
			body := map[string]any{"email": s.email}
			maps.Copy(body, more)
			return body
		}
	}
	phone := func(more map[string]any) func(*scene) map[string]any {
		return func(s *scene) map[string]any {
			body := map[string]any{"phone": s.number}
			maps.Copy(body, more)
			return body
		}
	}
	list := []question{
		{name: "a magic link", route: "POST /magic-link/send", ask: post("/magic-link/send", mail(nil))},
		{name: "a magic link, no account", route: "POST /magic-link/send", ask: post("/magic-link/send", mail(map[string]any{"create_user": false}))},
		{name: "a reset", route: "POST /forgot-password", ask: post("/forgot-password", mail(nil))},
		{name: "a code", route: "POST /otp/send", ask: post("/otp/send", phone(nil))},
		{name: "a code, no account", route: "POST /otp/send", spends: map[string]string{
			"SMSBudget": "a text that goes nowhere spends nothing, and is refused all the same",
		}, ask: post("/otp/send", phone(map[string]any{"create_user": false}))},
		{name: "a login", route: "POST /login", ask: post("/login", mail(map[string]any{"password": "none of theirs at all"}))},
		{name: "a login by number", route: "POST /login", ask: post("/login", phone(map[string]any{"password": "none of theirs at all"}))},
		{name: "a sign-up to confirm", route: "POST /signup", confirm: true, spends: map[string]string{
			"SendPerAddress": "a message to the account draws behind the request's back, by its own kind",
		}, ask: post("/signup", mail(map[string]any{"password": evilPassword}))},
		{name: "a code out of the blue", route: "POST /otp/verify", ask: post("/otp/verify", phone(map[string]any{"otp": "000000"}))},
		{name: "a wrong code", route: "POST /otp/verify", ask: func(s *scene) func() *answer {
			s.evil.send("POST", "/otp/send", map[string]any{"phone": s.number}).want(200)
			code := ""
			for _, m := range s.Inbox.Messages() {
				if m.To == s.number {
					code = m.Code
				}
			}
			body := map[string]any{"phone": s.number, "otp": wrongly(code)}
			return func() *answer { return s.evil.send("POST", "/otp/verify", body) }
		}},
		{name: "a wrong code, no account", route: "POST /otp/verify", ask: func(s *scene) func() *answer {
			s.evil.send("POST", "/otp/send", map[string]any{"phone": s.number, "create_user": false}).want(200)
			return func() *answer {
				return s.evil.send("POST", "/otp/verify", map[string]any{"phone": s.number, "otp": "00000"})
			}
		}},
	}
	return list
}

// about is the row of a question: about an account, whose number is proved, too, or
// about none.
func (q question) about(k kind) row {
	return row{name: q.name, kind: k, confirm: q.confirm, prepare: func(s *scene) func() *answer {
		if k == onStolen {
			now := s.Clock.Now()
			s.patch(s.id, store.UserPatch{Phone: &s.number, PhoneVerifiedAt: &now})
		}
		s.evil = s.person(s.t.Context()) // a stranger
		return q.ask(s)
	}}
}

// shape is all of an answer that does not differ from answer to answer.
func shape(a *answer) string {
	var headers []string
	for name, values := range a.header {
		if name != "X-Request-Id" {
			headers = append(headers, fmt.Sprint(name, values))
		}
	}
	slices.Sort(headers)
	body := string(a.body)
	var v map[string]any
	if json.Unmarshal(a.body, &v) == nil {
		delete(v, "request_id")
		body = fmt.Sprint(general(v))
	}
	return fmt.Sprintf("%d %s %s", a.status, strings.Join(headers, ", "), body)
}

// general puts kinds in place of values, but for codes and messages.
func general(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if k != "code" && k != "message" {
				v[k] = general(v[k])
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = general(v[i])
		}
		return v
	}
	return fmt.Sprintf("%T", v)
}

// tells names what tells an account from none after the same trial. limits are
// those that may refuse the request; nobody sees others.
func tells(known, unknown *played, limits []string) (list []string) {
	for i := range min(len(known.answers), len(unknown.answers)) {
		if k, u := shape(known.answers[i]), shape(unknown.answers[i]); k != u {
			list = append(list, fmt.Sprintf("the answer about an account is\n\t%s\nand about none\n\t%s", k, u))
		}
	}
	if known.hit == unknown.hit { // the same was to be done
		if known.hashes != unknown.hashes {
			list = append(list, fmt.Sprintf("%d hashes about an account, %d about none", known.hashes, unknown.hashes))
		}
		for _, limit := range limits {
			if k, u := known.drawn[limit], unknown.drawn[limit]; k != u {
				list = append(list, fmt.Sprintf("%d draws from %s about an account, %d about none", k, limit, u))
			}
		}
	}
	for i := range 7 { // asking on and on tells no more
		if k, u := shape(known.request()), shape(unknown.request()); k != u {
			return append(list, fmt.Sprintf("asked again %d times, the answer about an account is\n\t%s\nand about none\n\t%s", i+1, k, u))
		}
	}
	return list
}

func TestHostileStoreTellsNoAccounts(t *testing.T) {
	t.Parallel()
	draw := chances(t)
	for _, q := range questions() {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			w := newHostileWorld(t, q.about(onNothing))
			play := func(tr trial) (known, unknown *played) {
				tr.row = q.about(onStolen)
				known = w.play(tr)
				tr.row = q.about(onNothing)
				return known, w.play(tr)
			}
			known, unknown := play(trial{})
			if s := known.answer().status; s >= http.StatusInternalServerError || s == http.StatusUnprocessableEntity {
				t.Fatalf("%d %s", s, known.answer().body)
			}
			limits := slices.DeleteFunc(slices.Clone(auth.RouteLimits(w.Auth)[q.route]), func(limit string) bool { return q.spends[limit] != "" })
			trials := append([]trial{{}}, draw(t, max(known.n, unknown.n))...)
			for _, tr := range trials {
				known, unknown := play(tr)
				for _, v := range tells(known, unknown, limits) {
					t.Errorf("%s: %s", tr, v)
				}
			}
		})
	}
}
