package demo

import (
	"net/http"

	"github.com/authmount/auth"
)

// tokens is the answer to a sign-in.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	User    struct {
		ID string `json:"id"`
	} `json:"user"`
}

func (p *person) keep(dev rune, t tokens) {
	p.sessions[dev] = &session{t.Access, t.Refresh}
	p.id = t.User.ID
}

// signUp creates a person's account, verifies its address and sets up the second factor.
func (s *service) signUp(p *person) error {
	dev := rune(p.on[0])
	if p.by != password {
		if err := s.signIn(p, dev); err != nil {
			return err
		}
		return s.send(p, dev, http.MethodPatch, "/me", p.sessions[dev].access, fields{"full_name": p.name}, nil)
	}
	var t tokens
	if err := s.send(p, dev, http.MethodPost, "/signup", "", fields{"email": p.email, "password": p.password, "full_name": p.name}, &t); err != nil {
		return err
	}
	p.keep(dev, t)
	token, _, err := s.mailed(p.email, auth.KindVerifyEmail)
	if err != nil {
		return err
	}
	if !p.unverified {
		if err := s.send(p, dev, http.MethodPost, "/verify-email", t.Access, fields{"token": token}, nil); err != nil {
			return err
		}
	}
	if !p.mfa {
		return nil
	}
	return s.enrol(p, dev, t.Access)
}

// enrol sets up an authenticator app, with the token of a session or of a sign-in that
// needs one.
func (s *service) enrol(p *person, dev rune, token string) error {
	var setup struct {
		Secret string `json:"secret"`
	}
	if err := s.send(p, dev, http.MethodPost, "/2fa/setup-totp", token, nil, &setup); err != nil {
		return err
	}
	p.secret = setup.Secret
	var done struct {
		tokens
		Codes []string `json:"recovery_codes"`
	}
	if err := s.send(p, dev, http.MethodPost, "/2fa/verify-and-enable", token, fields{"totp_code": s.code(p)}, &done); err != nil {
		return err
	}
	if p.recovery = done.Codes; done.Access != "" {
		p.keep(dev, done.tokens)
	}
	return nil
}

// visit continues the session of a device, or signs in. Some people sign out afterwards,
// more of those who sign in with a link, because checking a password takes long.
func (s *service) visit(p *person, dev rune) error {
	if p.sessions == nil { // the account is no more
		return nil
	}
	switch err := s.resume(p, dev); {
	case is(err, auth.CodeUserBanned):
		p.sessions = nil // and does not come back
		return nil
	case err != nil:
		return err
	}
	oneIn := 8
	if p.by == link {
		oneIn = 2
	}
	if have := p.sessions[dev]; !devices[dev].mobile && s.chance.IntN(oneIn) == 0 {
		delete(p.sessions, dev)
		return s.send(p, dev, http.MethodPost, "/logout", have.access, fields{"refresh_token": have.refresh}, nil)
	}
	return nil
}

// resume refreshes the session of a device, or signs in.
func (s *service) resume(p *person, dev rune) error {
	if have := p.sessions[dev]; have != nil {
		var t tokens
		if err := s.send(p, dev, http.MethodPost, "/refresh", "", fields{"refresh_token": have.refresh}, &t); err == nil {
			p.keep(dev, t)
			return nil
		}
		delete(p.sessions, dev)
	}
	return s.signIn(p, dev)
}

// signIn signs a person in. One in seven passwords is mistyped first.
func (s *service) signIn(p *person, dev rune) error {
	var t tokens
	var err error
	switch p.by {
	case password, old, invited:
		if p.by == password && s.chance.IntN(7) == 0 {
			if err := s.send(p, dev, http.MethodPost, "/login", "", fields{"email": p.email, "password": "Capslock " + p.name}, nil); !is(err, auth.CodeInvalidCredentials) {
				return err
			}
		}
		err = s.send(p, dev, http.MethodPost, "/login", "", fields{"email": p.email, "password": p.password}, &t)
	case phone:
		var asked struct {
			ID string `json:"request_id"`
		}
		if err := s.send(p, dev, http.MethodPost, "/otp/send", "", fields{"phone": p.phone}, &asked); err != nil {
			return err
		}
		_, code, e := s.mailed(p.phone, auth.KindPhoneCode)
		if e != nil {
			return e
		}
		err = s.send(p, dev, http.MethodPost, "/otp/verify", "", fields{"phone": p.phone, "otp": code, "request_id": asked.ID}, &t)
	default: // a link; the others have no password
		if err := s.send(p, dev, http.MethodPost, "/magic-link/send", "", fields{"email": p.email}, nil); err != nil {
			return err
		}
		token, _, e := s.mailed(p.email, auth.KindMagicLink)
		if e != nil {
			return e
		}
		err = s.send(p, dev, http.MethodPost, "/magic-link/verify", "", fields{"token": token}, &t)
	}
	return s.second(p, dev, t, err)
}

// second completes a sign-in, with the second factor if it is asked for.
func (s *service) second(p *person, dev rune, t tokens, err error) error {
	switch no, _ := err.(*refused); { //nolint:errorlint // send returns it as it is
	case is(err, auth.CodeMFARequired):
		err = s.send(p, dev, http.MethodPost, "/2fa/verify", "", fields{"mfa_token": no.MFAToken, "totp_code": s.code(p)}, &t)
	case is(err, auth.CodeMFAEnrollmentRequired):
		return s.enrol(p, dev, no.MFAToken)
	}
	if err == nil {
		p.keep(dev, t)
	}
	return err
}
