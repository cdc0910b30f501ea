package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/examples/server/demo"
)

// prepareDemo checks the flags beside -demo, and adds those that it needs.
func (s *settings) prepareDemo() error {
	switch {
	case !s.demo:
		return nil
	case strings.HasPrefix(s.baseURL, "https://") || s.smtpURL != "" || s.twilioSID != "":
		return errors.New("-demo is for a loopback host, and sends no messages: leave out -smtp-url, -twilio-account-sid and an https -base-url")
	case s.database != "" && s.secret == "":
		return errors.New("-demo with -database-url needs -secret, because the second factors in the database are encrypted with it")
	case s.secret == "":
		s.secret = rand.Text() + rand.Text()
	}
	s.inbox = true
	return nil
}

// seedDemo fills the store, and prints how to sign in as the owner. That is not logged,
// because logs are stored and read by others.
func seedDemo(ctx context.Context, st auth.Store, s settings, to io.Writer) error {
	base := s.baseURL
	if base == "" {
		base = "http://" + s.addr + "/auth/v1"
	}
	o, err := demo.Seed(ctx, st, []byte(list(s.secret)[0]), base, s.appName)
	if err != nil {
		return fmt.Errorf("-demo: %w", err)
	}
	_, err = fmt.Fprintf(to, "\nThe store has a month of made-up data. Sign in at http://%s/dashboard/ as the owner:\n\n  email            %s\n  password         %s\n  recovery codes   %s\n  authenticator    %s (secret for an app, instead of a recovery code)\n\n",
		s.addr, o.Email, o.Password, strings.Join(o.RecoveryCodes[:3], "  "), o.TOTPSecret)
	return err
}
