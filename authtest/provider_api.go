package authtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// caller returns the user of an API request.
func (p *Provider) caller(w http.ResponseWriter, r *http.Request) (Person, bool) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	g, ok := p.grants[token]
	p.mu.Unlock()
	if !ok || g.code != "" {
		respond(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return Person{}, false
	}
	if !g.email {
		g.person.Email, g.person.EmailVerified = "", false
	}
	return g.person, true
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	who, ok := p.caller(w, r)
	if !ok {
		return
	}
	if p.has(OtherUserInfo) {
		who.Subject = "another"
	}
	body := map[string]any{"sub": who.Subject, "name": who.Name}
	if who.Email != "" {
		body["email"], body["email_verified"] = who.Email, who.EmailVerified
	}
	maps.Copy(body, who.Claims)
	respond(w, http.StatusOK, body)
}

func (p *Provider) githubUser(w http.ResponseWriter, r *http.Request) {
	if who, ok := p.caller(w, r); ok {
		respond(w, http.StatusOK, map[string]any{
			"id": number(who.Subject), "login": "login", "name": orNull(who.Name), "email": "shown@example.com",
		})
	}
}

func (p *Provider) githubEmails(w http.ResponseWriter, r *http.Request) {
	who, ok := p.caller(w, r)
	switch {
	case !ok:
	case who.Email == "":
		respond(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
	default:
		respond(w, http.StatusOK, []map[string]any{
			{"email": "other." + who.Email, "primary": false, "verified": true, "visibility": nil},
			{"email": who.Email, "primary": true, "verified": who.EmailVerified, "visibility": "private"},
			{"email": "another." + who.Email, "primary": false, "verified": true, "visibility": nil},
		})
	}
}

func (p *Provider) facebookUser(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	mac := hmac.New(sha256.New, []byte(clientSecret))
	mac.Write([]byte(token))
	if r.URL.Query().Get("appsecret_proof") != hex.EncodeToString(mac.Sum(nil)) {
		respond(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": "Invalid appsecret_proof", "code": 100}})
		return
	}
	if who, ok := p.caller(w, r); ok {
		body := map[string]any{"id": who.Subject, "name": who.Name}
		if who.Email != "" {
			body["email"] = who.Email
		}
		respond(w, http.StatusOK, body)
	}
}

func (p *Provider) twitterUser(w http.ResponseWriter, r *http.Request) {
	if who, ok := p.caller(w, r); ok {
		data := map[string]any{"id": who.Subject, "name": who.Name, "username": "username"}
		if who.Email != "" && who.EmailVerified && strings.Contains(r.URL.Query().Get("user.fields"), "confirmed_email") {
			data["confirmed_email"] = who.Email
		}
		respond(w, http.StatusOK, map[string]any{"data": data})
	}
}

func (p *Provider) discordUser(w http.ResponseWriter, r *http.Request) {
	if who, ok := p.caller(w, r); ok {
		respond(w, http.StatusOK, map[string]any{
			"id": who.Subject, "username": "username", "global_name": orNull(who.Name), "email": orNull(who.Email), "verified": who.EmailVerified,
		})
	}
}

// number derives a GitHub id from any subject.
func number(subject string) uint64 {
	if n, err := strconv.ParseUint(subject, 10, 64); err == nil {
		return n
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(subject))
	return uint64(h.Sum32())
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
