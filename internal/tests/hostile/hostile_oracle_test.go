package hostile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// The class: a stranger asks about an email address or phone number. Neither the answer nor
// its use reveals whether an account exists, whatever the store does and whenever the
// stranger disconnects.

// question is a request that must not reveal whether an account exists.
type question struct {
	name    string
	route   string
	confirm bool
	spends  map[string]string                             // limits that differ without a visible effect, with the reason
	ask     func(s *harness.Scene) func() *harness.Answer // in the name of a stranger
}

func questions() []question {
	post := func(path string, body func(s *harness.Scene) map[string]any) func(*harness.Scene) func() *harness.Answer {
		return func(s *harness.Scene) func() *harness.Answer {
			b := body(s)
			return func() *harness.Answer { return s.Evil.Send("POST", path, b) }
		}
	}
	mail := func(more map[string]any) func(*harness.Scene) map[string]any {
		return func(s *harness.Scene) map[string]any {
			body := map[string]any{"email": s.Email}
			maps.Copy(body, more)
			return body
		}
	}
	phone := func(more map[string]any) func(*harness.Scene) map[string]any {
		return func(s *harness.Scene) map[string]any {
			body := map[string]any{"phone": s.Number}
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
		}, ask: post("/signup", mail(map[string]any{"password": harness.EvilPassword}))},
		{name: "a code out of the blue", route: "POST /otp/verify", ask: post("/otp/verify", phone(map[string]any{"otp": "000000"}))},
		{name: "a wrong code", route: "POST /otp/verify", ask: func(s *harness.Scene) func() *harness.Answer {
			s.Evil.Send("POST", "/otp/send", map[string]any{"phone": s.Number}).Want(200)
			code := ""
			for _, m := range s.Inbox.Messages() {
				if m.To == s.Number {
					code = m.Code
				}
			}
			body := map[string]any{"phone": s.Number, "otp": harness.Wrongly(code)}
			return func() *harness.Answer { return s.Evil.Send("POST", "/otp/verify", body) }
		}},
		{name: "a wrong code, no account", route: "POST /otp/verify", ask: func(s *harness.Scene) func() *harness.Answer {
			s.Evil.Send("POST", "/otp/send", map[string]any{"phone": s.Number, "create_user": false}).Want(200)
			return func() *harness.Answer {
				return s.Evil.Send("POST", "/otp/verify", map[string]any{"phone": s.Number, "otp": "00000"})
			}
		}},
	}
	return list
}

// about is the row of a question: about an account, which also has a verified phone number,
// or about none.
func (q question) about(k harness.Kind) harness.Row {
	return harness.Row{Name: q.name, Kind: k, Confirm: q.confirm, Prepare: func(s *harness.Scene) func() *harness.Answer {
		if k == harness.OnStolen {
			now := s.Clock.Now()
			s.Patch(s.Id, store.UserPatch{Phone: &s.Number, PhoneVerifiedAt: &now})
		}
		s.Evil = s.NewPerson(s.T.Context()) // a stranger
		return q.ask(s)
	}}
}

// shape is all of an answer that does not differ from answer to answer.
func shape(a *harness.Answer) string {
	var headers []string
	for name, values := range a.Header {
		if name != "X-Request-Id" {
			headers = append(headers, fmt.Sprint(name, values))
		}
	}
	slices.Sort(headers)
	body := string(a.Body)
	var v map[string]any
	if json.Unmarshal(a.Body, &v) == nil {
		delete(v, "request_id")
		body = fmt.Sprint(general(v))
	}
	return fmt.Sprintf("%d %s %s", a.Status, strings.Join(headers, ", "), body)
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

// tells names the differences between a known and an unknown account after the same trial.
// limits are the limits that may refuse the request; callers see no others.
func tells(known, unknown *harness.Played, limits []string) (list []string) {
	for i := range min(len(known.Answers), len(unknown.Answers)) {
		if k, u := shape(known.Answers[i]), shape(unknown.Answers[i]); k != u {
			list = append(list, fmt.Sprintf("the answer about an account is\n\t%s\nand about none\n\t%s", k, u))
		}
	}
	if known.Hit == unknown.Hit { // both requests had the same work to do
		if known.Hashes != unknown.Hashes {
			list = append(list, fmt.Sprintf("%d hashes about an account, %d about none", known.Hashes, unknown.Hashes))
		}
		for _, limit := range limits {
			if k, u := known.Drawn[limit], unknown.Drawn[limit]; k != u {
				list = append(list, fmt.Sprintf("%d draws from %s about an account, %d about none", k, limit, u))
			}
		}
	}
	for i := range 7 { // repeating the question reveals no more
		if k, u := shape(known.Request()), shape(unknown.Request()); k != u {
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
			w := harness.NewHostileWorld(t, q.about(harness.OnNothing))
			play := func(tr harness.Trial) (known, unknown *harness.Played) {
				tr.Row = q.about(harness.OnStolen)
				known = w.Play(tr)
				tr.Row = q.about(harness.OnNothing)
				return known, w.Play(tr)
			}
			known, unknown := play(harness.Trial{})
			if s := known.Answer().Status; s >= http.StatusInternalServerError || s == http.StatusUnprocessableEntity {
				t.Fatalf("%d %s", s, known.Answer().Body)
			}
			limits := slices.DeleteFunc(slices.Clone(harness.RouteLimits(w.Auth)[q.route]), func(limit string) bool { return q.spends[limit] != "" })
			trials := append([]harness.Trial{{}}, draw(t, max(known.N, unknown.N))...)
			for _, tr := range trials {
				known, unknown := play(tr)
				for _, v := range tells(known, unknown, limits) {
					t.Errorf("%s: %s", tr, v)
				}
			}
		})
	}
}
