//go:build faults

package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// crowd is the number of requests that compete for one resource.
const crowd = 30

// from is the client that a trusted proxy names, so that tests do not share limits.
func from(ip string) []string { return []string{"X-Forwarded-For", ip} }

// race sends competing requests to all servers at once and counts the responses by status
// and code.
func race(servers []*server, request func(i int, s *server) reply) (answers map[string]int, won []reply) {
	answers = map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range crowd {
		wg.Go(func() {
			<-start
			r := request(i, servers[i%len(servers)])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.err != nil:
				answers[r.err.Error()]++
			default:
				answers[strings.TrimSpace(fmt.Sprintf("%d %s", r.status, r.code))]++
			}
			if r.status < 400 && r.err == nil {
				won = append(won, r)
			}
		})
	}
	close(start)
	wg.Wait()
	return answers, won
}

// wantAnswers compares the counts of race.
func wantAnswers(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestThreeServersAreOne(t *testing.T) {
	pg := postgres(t)
	servers := []*server{serve(t, pg.URL), serve(t, pg.URL), serve(t, pg.URL)}
	on := func(i int) *server { return servers[i%len(servers)] }

	t.Run("failed logins count on all", func(t *testing.T) {
		ip := from("192.0.2.1")
		ada, ben := newPerson("ada"), newPerson("ben")
		for _, p := range []*person{ada, ben} {
			servers[0].must(t, 200, "POST", "/signup", p.credentials(p.password), ip...)
		}
		for i := range 10 {
			on(i).refused(t, 401, "invalid_credentials", "POST", "/login", ada.credentials("wrong"), ip...)
		}
		for _, s := range servers {
			s.refused(t, 429, "rate_limited", "POST", "/login", ada.credentials("wrong"), ip...)
			s.refused(t, 429, "rate_limited", "POST", "/login", ada.credentials(ada.password), from("192.0.2.2")...)
			s.must(t, 200, "POST", "/login", ben.credentials(ben.password), ip...)
		}
	})

	t.Run("parallel guesses are counted exactly", func(t *testing.T) {
		p := newPerson("guessed")
		servers[0].must(t, 200, "POST", "/signup", p.credentials(p.password), from("192.0.2.3")...)
		got, _ := race(servers, func(i int, s *server) reply {
			return s.call("POST", "/login", p.credentials(fmt.Sprint("wrong", i)), from("192.0.2.3")...)
		})
		wantAnswers(t, "wrong passwords", got, map[string]int{"401 invalid_credentials": 10, "429 rate_limited": crowd - 10})
	})

	t.Run("a phone code dies of five wrong tries", func(t *testing.T) {
		ip := from("192.0.2.4")
		code := func(phone string) (right, wrong string) {
			servers[0].must(t, 200, "POST", "/otp/send", obj{"phone": phone}, ip...)
			right = servers[0].message(t, phone, "").Code
			if wrong = "000000"; right == wrong {
				wrong = "111111"
			}
			return right, wrong
		}
		guess := func(phone, otp string) obj { return obj{"phone": phone, "otp": otp} }
		right, wrong := code("+4930123401")
		for i := range 5 {
			on(i).refused(t, 400, "invalid_code", "POST", "/otp/verify", guess("+4930123401", wrong), ip...)
		}
		for _, s := range servers {
			s.refused(t, 429, "rate_limited", "POST", "/otp/verify", guess("+4930123401", right), ip...)
		}
		right, wrong = code("+4930123402")
		for i := range 4 {
			on(i).refused(t, 400, "invalid_code", "POST", "/otp/verify", guess("+4930123402", wrong), ip...)
		}
		on(4).must(t, 200, "POST", "/otp/verify", guess("+4930123402", right), ip...)
	})

	for round := range 3 {
		t.Run(fmt.Sprintf("one winner, round %d", round), func(t *testing.T) {
			one := map[string]int{"200": 1, "400 invalid_token": crowd - 1}
			ip := from(fmt.Sprintf("192.0.2.%d", 10+round))
			p := newPerson(fmt.Sprintf("one-winner-%d", round))

			got, _ := race(servers, func(i int, s *server) reply {
				return s.call("POST", "/signup", p.credentials(p.password), from(fmt.Sprintf("198.51.100.%d", i))...)
			})
			// Five messages an hour to one address: four more report that it is taken.
			wantAnswers(t, "sign-ups", got, map[string]int{"200": 1, "409 user_already_exists": 4, "429 rate_limited": crowd - 5})

			asked := on(round)
			asked.must(t, 200, "POST", "/forgot-password", obj{"email": p.email}, ip...)
			token := asked.message(t, p.email, "/reset-password").token()
			var mu sync.Mutex
			password := ""
			got, _ = race(servers, func(i int, s *server) reply {
				mine := fmt.Sprintf("%s of %d", p.next, i)
				r := s.call("POST", "/reset-password", obj{"token": token, "new_password": mine}, ip...)
				if r.status == 200 {
					mu.Lock()
					defer mu.Unlock()
					password = mine
				}
				return r
			})
			wantAnswers(t, "resets", got, one)
			on(round+1).must(t, 200, "POST", "/login", p.credentials(password), ip...)
			on(round+2).refused(t, 401, "invalid_credentials", "POST", "/login", p.credentials(p.password), ip...)

			asked.must(t, 200, "POST", "/magic-link/send", obj{"email": p.email}, ip...)
			token = asked.message(t, p.email, "/magic-link").token()
			got, won := race(servers, func(_ int, s *server) reply { return s.call("POST", "/magic-link/verify", obj{"token": token}, ip...) })
			wantAnswers(t, "magic link", got, one)
			if len(won) == 1 {
				on(round+1).must(t, 200, "GET", "/me", nil, bearer(won[0].body.AccessToken)...)
			}

			stranger := fmt.Sprintf("stranger-%d@example.com", round)
			verifier := strings.Repeat("v", 50)
			sum := sha256.Sum256([]byte(verifier))
			asked.must(t, 200, "POST", "/magic-link/send", obj{
				"email": stranger, "redirect_to": "https://app.example/done",
				"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
			}, ip...)
			token = asked.message(t, stranger, "/magic-link").token()
			got, won = race(servers, func(i int, s *server) reply {
				return s.call("POST", "/magic-link/verify", map[string]any{"token": token}, from(fmt.Sprintf("198.51.100.%d", 100+i))...)
			})
			wantAnswers(t, "magic link of a stranger", got, map[string]int{"303": crowd}) // opening it does not use it without the verifier
			if len(won) != crowd {
				return
			}
			got, _ = race(servers, func(i int, s *server) reply {
				to, err := url.Parse(won[i].header.Get("Location"))
				if err != nil {
					return reply{err: err}
				}
				return s.call("POST", "/exchange", obj{"code": to.Query().Get("code"), "code_verifier": verifier}, ip...)
			})
			wantAnswers(t, "exchange", got, map[string]int{"200": 1, "400 invalid_code": crowd - 1})
		})
	}

	t.Run("a refresh token has one successor", func(t *testing.T) {
		p := newPerson("refresher")
		first := servers[0].must(t, 200, "POST", "/signup", p.credentials(p.password), from("192.0.2.20")...).body
		got, won := race(servers, func(_ int, s *server) reply {
			return s.call("POST", "/refresh", obj{"refresh_token": first.RefreshToken})
		})
		wantAnswers(t, "refreshes", got, map[string]int{"200": crowd})
		second := won[0].body
		for _, r := range won {
			if r.body.RefreshToken != second.RefreshToken || r.body.RefreshToken == first.RefreshToken || r.body.SessionID != first.SessionID {
				t.Fatalf("two successors: %v and %v", r, won[0])
			}
		}
		third := servers[1].must(t, 200, "POST", "/refresh", obj{"refresh_token": second.RefreshToken}).body
		servers[2].must(t, 200, "GET", "/me", nil, bearer(third.AccessToken)...)
		servers[2].refused(t, 400, "refresh_token_reused", "POST", "/refresh", obj{"refresh_token": first.RefreshToken})
		for _, s := range servers {
			s.refused(t, 400, "session_ended", "POST", "/refresh", obj{"refresh_token": third.RefreshToken})
			s.refused(t, 401, "session_ended", "GET", "/me", nil, bearer(third.AccessToken)...)
		}
	})

	t.Run("keys and access tokens are shared", func(t *testing.T) {
		p := newPerson("bearer")
		token := servers[0].must(t, 200, "POST", "/signup", p.credentials(p.password), from("192.0.2.21")...).body.AccessToken
		jwks := servers[0].must(t, 200, "GET", "/.well-known/jwks.json", nil).raw
		for _, s := range servers {
			if got := s.must(t, 200, "GET", "/.well-known/jwks.json", nil).raw; !bytes.Equal(got, jwks) {
				t.Errorf("keys of %s: %s, want %s", s.addr, got, jwks)
			}
			s.must(t, 200, "GET", "/me", nil, bearer(token)...)
		}
		other := serve(t, pg.URL, "-secret", "Zq7-another-secret-than-the-others-have-4815")
		if got := other.must(t, 200, "GET", "/.well-known/jwks.json", nil).raw; bytes.Equal(got, jwks) {
			t.Error("another secret, the same keys")
		}
		other.refused(t, 401, "bad_token", "GET", "/me", nil, bearer(token)...)
	})
	whole(t, pg.URL)
}
