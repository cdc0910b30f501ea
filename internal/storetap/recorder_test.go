package storetap_test

import (
	"context"
	"time"

	"github.com/authmount/auth"
)

// recorder remembers the call that it got, and has every capability.
type recorder struct {
	method string
	args   []any
}

func (r *recorder) saw(method string, args ...any) error {
	r.method, r.args = method, args
	return errRecorded
}

func (r *recorder) Contract() int {
	_ = r.saw("Contract")
	return 42
}

func (r *recorder) CreateUser(_ context.Context, c auth.CreateUser) (auth.User, error) {
	return auth.User{}, r.saw("CreateUser", c)
}

func (r *recorder) User(_ context.Context, key auth.UserKey) (auth.User, error) {
	return auth.User{}, r.saw("User", key)
}

func (r *recorder) Credentials(_ context.Context, key auth.UserKey) (auth.Credentials, error) {
	return auth.Credentials{}, r.saw("Credentials", key)
}

func (r *recorder) UpdateUser(_ context.Context, c auth.UpdateUser) (auth.User, error) {
	return auth.User{}, r.saw("UpdateUser", c)
}

func (r *recorder) DeleteUser(_ context.Context, c auth.DeleteUser) error {
	return r.saw("DeleteUser", c)
}

func (r *recorder) CreateSession(_ context.Context, c auth.CreateSession) (auth.User, error) {
	return auth.User{}, r.saw("CreateSession", c)
}

func (r *recorder) Session(_ context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	return auth.Session{}, auth.User{}, r.saw("Session", id, now)
}

func (r *recorder) AdvanceSession(_ context.Context, c auth.Advance) (auth.Session, auth.User, error) {
	return auth.Session{}, auth.User{}, r.saw("AdvanceSession", c)
}

func (r *recorder) Sessions(_ context.Context, userID string, now time.Time) ([]auth.Session, error) {
	return nil, r.saw("Sessions", userID, now)
}

func (r *recorder) RevokeSessions(_ context.Context, c auth.RevokeSessions) ([]string, error) {
	return nil, r.saw("RevokeSessions", c)
}

func (r *recorder) PutToken(_ context.Context, c auth.PutToken) error {
	return r.saw("PutToken", c)
}

func (r *recorder) PeekToken(_ context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	return auth.Token{}, r.saw("PeekToken", p, hash, now)
}

func (r *recorder) RedeemToken(_ context.Context, c auth.Redemption) (auth.Token, auth.User, error) {
	return auth.Token{}, auth.User{}, r.saw("RedeemToken", c)
}

func (r *recorder) TryCode(_ context.Context, c auth.TryCode) (auth.Token, auth.User, error) {
	return auth.Token{}, auth.User{}, r.saw("TryCode", c)
}

func (r *recorder) Take(_ context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	return auth.Decision{}, r.saw("Take", draws, now)
}

func (r *recorder) Sweep(_ context.Context, now time.Time, limit int) (int, error) {
	return 0, r.saw("Sweep", now, limit)
}

func (r *recorder) Ping(_ context.Context) error {
	return r.saw("Ping")
}

func (r *recorder) Factors(_ context.Context, userID string) (auth.Factors, error) {
	return auth.Factors{}, r.saw("Factors", userID)
}

func (r *recorder) PutFactor(_ context.Context, c auth.PutFactor) error {
	return r.saw("PutFactor", c)
}

func (r *recorder) EnableFactor(_ context.Context, c auth.EnableFactor) (auth.User, error) {
	return auth.User{}, r.saw("EnableFactor", c)
}

func (r *recorder) UseTOTPStep(_ context.Context, c auth.UseTOTPStep) error {
	return r.saw("UseTOTPStep", c)
}

func (r *recorder) UseRecoveryCode(_ context.Context, c auth.UseRecoveryCode) (int, error) {
	return 0, r.saw("UseRecoveryCode", c)
}

func (r *recorder) PutRecoveryCodes(_ context.Context, c auth.PutRecoveryCodes) error {
	return r.saw("PutRecoveryCodes", c)
}

func (r *recorder) RemoveFactor(_ context.Context, c auth.RemoveFactor) (auth.User, error) {
	return auth.User{}, r.saw("RemoveFactor", c)
}

func (r *recorder) RaiseSession(_ context.Context, c auth.RaiseSession) (auth.Session, auth.User, error) {
	return auth.Session{}, auth.User{}, r.saw("RaiseSession", c)
}

func (r *recorder) AddProof(_ context.Context, c auth.AddProof) (auth.Session, auth.User, error) {
	return auth.Session{}, auth.User{}, r.saw("AddProof", c)
}

func (r *recorder) Held(_ context.Context, userID string, now time.Time) (auth.Held, error) {
	return auth.Held{}, r.saw("Held", userID, now)
}

func (r *recorder) Account(_ context.Context, key auth.UserKey, now time.Time) (auth.Credentials, auth.Held, error) {
	return auth.Credentials{}, auth.Held{}, r.saw("Account", key, now)
}

func (r *recorder) Events(_ context.Context, q auth.EventQuery) ([]auth.Event, error) {
	return nil, r.saw("Events", q)
}

func (r *recorder) AddEvents(_ context.Context, list []auth.Event) error {
	return r.saw("AddEvents", list)
}

func (r *recorder) SweepEvents(_ context.Context, before, now time.Time, limit int) (int, error) {
	return 0, r.saw("SweepEvents", before, now, limit)
}

func (r *recorder) AddCounts(_ context.Context, c auth.AddCounts) error {
	return r.saw("AddCounts", c)
}

func (r *recorder) Counts(_ context.Context, q auth.CountQuery) ([]auth.Count, error) {
	return nil, r.saw("Counts", q)
}

func (r *recorder) Totals(_ context.Context, now time.Time) (auth.Totals, error) {
	return auth.Totals{}, r.saw("Totals", now)
}

func (r *recorder) ClaimMessages(_ context.Context, c auth.ClaimMessages) ([]auth.SealedMessage, error) {
	return nil, r.saw("ClaimMessages", c)
}

func (r *recorder) FinishMessage(_ context.Context, f auth.FinishMessage) error {
	return r.saw("FinishMessage", f)
}

func (r *recorder) Roles(_ context.Context) (auth.RoleTable, error) {
	return auth.RoleTable{}, r.saw("Roles")
}

func (r *recorder) PutRole(_ context.Context, c auth.PutRole) (auth.RoleTable, error) {
	return auth.RoleTable{}, r.saw("PutRole", c)
}

func (r *recorder) DeleteRole(_ context.Context, c auth.DeleteRole) (auth.RoleTable, error) {
	return auth.RoleTable{}, r.saw("DeleteRole", c)
}

func (r *recorder) Key(_ context.Context, id string) (auth.APIKey, error) {
	return auth.APIKey{}, r.saw("Key", id)
}

func (r *recorder) Keys(_ context.Context, q auth.KeyQuery) ([]auth.APIKey, error) {
	return nil, r.saw("Keys", q)
}

func (r *recorder) UseKey(_ context.Context, id string, at time.Time) error {
	return r.saw("UseKey", id, at)
}

func (r *recorder) PutKey(_ context.Context, c auth.PutKey) (auth.APIKey, error) {
	return auth.APIKey{}, r.saw("PutKey", c)
}

func (r *recorder) CreateUsers(_ context.Context, c auth.CreateUsers) ([]error, error) {
	return nil, r.saw("CreateUsers", c)
}

func (r *recorder) KeyUses(_ context.Context, now time.Time) (auth.KeyUses, error) {
	return auth.KeyUses{}, r.saw("KeyUses", now)
}

func (r *recorder) ClearLimits(_ context.Context, c auth.ClearLimits) error {
	return r.saw("ClearLimits", c)
}

func (r *recorder) BeginImpersonation(_ context.Context, c auth.BeginImpersonation) error {
	return r.saw("BeginImpersonation", c)
}

func (r *recorder) Impersonation(_ context.Context, id string, now time.Time) (auth.Impersonation, auth.User, error) {
	return auth.Impersonation{}, auth.User{}, r.saw("Impersonation", id, now)
}

func (r *recorder) Impersonations(_ context.Context, userID string, now time.Time) ([]auth.Impersonation, error) {
	return nil, r.saw("Impersonations", userID, now)
}

func (r *recorder) EndImpersonation(_ context.Context, c auth.EndImpersonation) error {
	return r.saw("EndImpersonation", c)
}

func (r *recorder) ListSessions(_ context.Context, q auth.SessionQuery) ([]auth.Session, error) {
	return nil, r.saw("ListSessions", q)
}

func (r *recorder) EndEverySession(_ context.Context, c auth.EndEverySession) (int, error) {
	return 0, r.saw("EndEverySession", c)
}
