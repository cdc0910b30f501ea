package authclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/authmount/auth"
)

// scenarioArgs are the parameters of calls, by their names in the scenarios.
type scenarioArgs struct {
	Email, Phone, Password, FullName, Code, Token, NewPassword, Current, Next, Scope string

	TOTPCode     string `json:"totpCode"`
	RecoveryCode string
	UserMetadata map[string]any
	CreateUser   *bool
}

// scenarioCalls makes the calls of a scenario. It keeps the id of the last message, which
// other clients keep themselves.
type scenarioCalls struct {
	c      *Client
	signUp *SignUpResult
	flow   *Flow
}

// call makes the call of a step, and returns its data.
func (s *scenarioCalls) call(ctx context.Context, name string, with json.RawMessage) (any, error) {
	var p scenarioArgs
	var first string
	var list []string
	if with != nil {
		if json.Unmarshal(with, &list) == nil {
			first = list[0]
		} else if err := json.Unmarshal(with, &p); err != nil {
			return nil, err
		}
	}
	c := s.c
	switch name {
	case "start":
		_, _ = c.Restore(ctx) // an outage shows in the state
		return nil, nil
	case "getToken":
		return c.Token(ctx)
	case "getUser":
		return c.User(ctx)
	case "signInWithPassword":
		return c.SignInWithPassword(ctx, PasswordParams{Email: p.Email, Phone: p.Phone, Password: p.Password})
	case "signUp":
		var err error
		s.signUp, err = c.SignUp(ctx, SignUpParams{Email: p.Email, Password: p.Password, FullName: p.FullName, UserMetadata: p.UserMetadata})
		if err != nil {
			return nil, err
		}
		if s.signUp.Session == nil {
			return map[string]any{"user": s.signUp.User, "session": nil}, nil
		}
		return s.signUp.Session, nil
	case "signInWithOtp":
		var err error
		s.flow, err = c.SendOTP(ctx, OTPParams{Email: p.Email, Phone: p.Phone, NoSignUp: p.CreateUser != nil && !*p.CreateUser})
		if err != nil {
			return nil, err
		}
		return map[string]any{"request_id": s.flow.RequestID}, nil
	case "verifyOtp":
		if s.flow != nil {
			return s.flow.Verify(ctx, p.Code)
		}
		return c.ConfirmEmail(ctx, ConfirmEmailParams{Email: p.Email, Code: p.Code, RequestID: s.signUp.RequestID})
	case "mfa.verify":
		return c.VerifyMFA(ctx, MFAParams{TOTPCode: p.TOTPCode, RecoveryCode: p.RecoveryCode})
	case "mfa.enroll":
		return c.EnrollTOTP(ctx)
	case "mfa.enable":
		codes, err := c.EnableTOTP(ctx, p.TOTPCode)
		return map[string]any{"recovery_codes": codes}, err
	case "signOut":
		return nil, c.SignOut(ctx, Scope(p.Scope))
	case "updateUser":
		return c.UpdateUser(ctx, UpdateUserParams{FullName: &p.FullName})
	case "confirmPhone":
		return c.ConfirmPhone(ctx, p.Phone, p.Code)
	case "confirm":
		return c.Confirm(ctx, ConfirmParams{Password: p.Password, TOTPCode: p.TOTPCode})
	case "changePassword":
		return nil, c.ChangePassword(ctx, p.Current, p.Next)
	case "resetPasswordForEmail":
		return nil, c.ResetPasswordForEmail(ctx, first, "")
	case "resetPassword":
		return nil, c.ResetPassword(ctx, p.Token, p.NewPassword)
	case "sessions.list":
		return c.Sessions(ctx)
	case "sessions.end":
		if first == "" {
			return nil, c.EndOtherSessions(ctx)
		}
		return nil, c.EndSession(ctx, first)
	case "deleteAccount":
		return nil, c.DeleteAccount(ctx)
	case "settings":
		return c.Settings(ctx)
	}
	return nil, &Error{Code: auth.CodeNotFound, Message: fmt.Sprintf("this runner knows no call %q", name)}
}
