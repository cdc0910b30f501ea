package storetap_test

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// recorder remembers the call that it got, and has every optional interface.
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

func (r *recorder) CreateUser(_ context.Context, c store.CreateUser) (store.User, error) {
	return store.User{}, r.saw("CreateUser", c)
}

func (r *recorder) User(_ context.Context, key store.UserKey) (store.User, error) {
	return store.User{}, r.saw("User", key)
}

func (r *recorder) Credentials(_ context.Context, key store.UserKey) (store.Credentials, error) {
	return store.Credentials{}, r.saw("Credentials", key)
}

func (r *recorder) UpdateUser(_ context.Context, c store.UpdateUser) (store.User, error) {
	return store.User{}, r.saw("UpdateUser", c)
}

func (r *recorder) DeleteUser(_ context.Context, c store.DeleteUser) error {
	return r.saw("DeleteUser", c)
}

func (r *recorder) CreateSession(_ context.Context, c store.CreateSession) (store.User, error) {
	return store.User{}, r.saw("CreateSession", c)
}

func (r *recorder) Session(_ context.Context, id string, now time.Time) (store.Session, store.User, error) {
	return store.Session{}, store.User{}, r.saw("Session", id, now)
}

func (r *recorder) AdvanceSession(_ context.Context, c store.Advance) (store.Session, store.User, error) {
	return store.Session{}, store.User{}, r.saw("AdvanceSession", c)
}

func (r *recorder) Sessions(_ context.Context, userID string, now time.Time) ([]store.Session, error) {
	return nil, r.saw("Sessions", userID, now)
}

func (r *recorder) RevokeSessions(_ context.Context, c store.RevokeSessions) ([]string, error) {
	return nil, r.saw("RevokeSessions", c)
}

func (r *recorder) PutToken(_ context.Context, c store.PutToken) error {
	return r.saw("PutToken", c)
}

func (r *recorder) PeekToken(_ context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	return store.Token{}, r.saw("PeekToken", p, hash, now)
}

func (r *recorder) RedeemToken(_ context.Context, c store.Redemption) (store.Token, store.User, error) {
	return store.Token{}, store.User{}, r.saw("RedeemToken", c)
}

func (r *recorder) TryCode(_ context.Context, c store.TryCode) (store.Token, store.User, error) {
	return store.Token{}, store.User{}, r.saw("TryCode", c)
}

func (r *recorder) Take(_ context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	return store.Decision{}, r.saw("Take", draws, now)
}

func (r *recorder) Sweep(_ context.Context, now time.Time, limit int) (int, error) {
	return 0, r.saw("Sweep", now, limit)
}

func (r *recorder) Ping(_ context.Context) error {
	return r.saw("Ping")
}

func (r *recorder) Factors(_ context.Context, userID string) (store.Factors, error) {
	return store.Factors{}, r.saw("Factors", userID)
}

func (r *recorder) PutFactor(_ context.Context, c store.PutFactor) error {
	return r.saw("PutFactor", c)
}

func (r *recorder) EnableFactor(_ context.Context, c store.EnableFactor) (store.FactorResult, error) {
	return store.FactorResult{}, r.saw("EnableFactor", c)
}

func (r *recorder) UseFactor(_ context.Context, c store.UseFactor) (store.FactorResult, error) {
	return store.FactorResult{}, r.saw("UseFactor", c)
}

func (r *recorder) UseRecoveryCode(_ context.Context, c store.UseRecoveryCode) (store.FactorResult, error) {
	return store.FactorResult{}, r.saw("UseRecoveryCode", c)
}

func (r *recorder) PutRecoveryCodes(_ context.Context, c store.PutRecoveryCodes) error {
	return r.saw("PutRecoveryCodes", c)
}

func (r *recorder) RemoveFactor(_ context.Context, c store.RemoveFactor) (store.User, error) {
	return store.User{}, r.saw("RemoveFactor", c)
}

func (r *recorder) AddProof(_ context.Context, c store.AddProof) (store.Session, store.User, error) {
	return store.Session{}, store.User{}, r.saw("AddProof", c)
}

func (r *recorder) Held(_ context.Context, userID string, now time.Time) (store.Held, error) {
	return store.Held{}, r.saw("Held", userID, now)
}

func (r *recorder) Account(_ context.Context, key store.UserKey, now time.Time) (store.Credentials, store.Held, error) {
	return store.Credentials{}, store.Held{}, r.saw("Account", key, now)
}

func (r *recorder) Events(_ context.Context, q store.EventQuery) ([]store.Event, error) {
	return nil, r.saw("Events", q)
}

func (r *recorder) AddEvents(_ context.Context, list []store.Event) error {
	return r.saw("AddEvents", list)
}

func (r *recorder) SweepEvents(_ context.Context, before, now time.Time, limit int) (int, error) {
	return 0, r.saw("SweepEvents", before, now, limit)
}

func (r *recorder) AddCounts(_ context.Context, c store.AddCounts) error {
	return r.saw("AddCounts", c)
}

func (r *recorder) Counts(_ context.Context, q store.CountQuery) ([]store.Count, error) {
	return nil, r.saw("Counts", q)
}

func (r *recorder) Totals(_ context.Context, now time.Time) (store.Totals, error) {
	return store.Totals{}, r.saw("Totals", now)
}

func (r *recorder) ClaimMessages(_ context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	return nil, r.saw("ClaimMessages", c)
}

func (r *recorder) FinishMessage(_ context.Context, f store.FinishMessage) error {
	return r.saw("FinishMessage", f)
}

func (r *recorder) Roles(_ context.Context) (store.RoleTable, error) {
	return store.RoleTable{}, r.saw("Roles")
}

func (r *recorder) PutRole(_ context.Context, c store.PutRole) (store.RoleTable, error) {
	return store.RoleTable{}, r.saw("PutRole", c)
}

func (r *recorder) DeleteRole(_ context.Context, c store.DeleteRole) (store.RoleTable, error) {
	return store.RoleTable{}, r.saw("DeleteRole", c)
}

func (r *recorder) Key(_ context.Context, id string) (store.APIKey, error) {
	return store.APIKey{}, r.saw("Key", id)
}

func (r *recorder) Keys(_ context.Context, q store.KeyQuery) ([]store.APIKey, error) {
	return nil, r.saw("Keys", q)
}

func (r *recorder) UseKey(_ context.Context, id string, at time.Time) error {
	return r.saw("UseKey", id, at)
}

func (r *recorder) PutKey(_ context.Context, c store.PutKey) (store.APIKey, error) {
	return store.APIKey{}, r.saw("PutKey", c)
}

func (r *recorder) CreateUsers(_ context.Context, c store.CreateUsers) ([]error, error) {
	return nil, r.saw("CreateUsers", c)
}

func (r *recorder) KeyUses(_ context.Context, now time.Time) (store.KeyUses, error) {
	return store.KeyUses{}, r.saw("KeyUses", now)
}

func (r *recorder) ClearLimits(_ context.Context, c store.ClearLimits) error {
	return r.saw("ClearLimits", c)
}

func (r *recorder) BeginImpersonation(_ context.Context, c store.BeginImpersonation) error {
	return r.saw("BeginImpersonation", c)
}

func (r *recorder) Impersonation(_ context.Context, id string, now time.Time) (store.Impersonation, store.User, error) {
	return store.Impersonation{}, store.User{}, r.saw("Impersonation", id, now)
}

func (r *recorder) Impersonations(_ context.Context, userID string, now time.Time) ([]store.Impersonation, error) {
	return nil, r.saw("Impersonations", userID, now)
}

func (r *recorder) EndImpersonation(_ context.Context, c store.EndImpersonation) error {
	return r.saw("EndImpersonation", c)
}

func (r *recorder) ListSessions(_ context.Context, q store.SessionQuery) ([]store.Session, error) {
	return nil, r.saw("ListSessions", q)
}

func (r *recorder) SessionOrder(_ context.Context) (int64, error) {
	return 0, r.saw("SessionOrder")
}

func (r *recorder) EndEverySession(_ context.Context, c store.EndEverySession) (int, error) {
	return 0, r.saw("EndEverySession", c)
}

func (r *recorder) EverOwned(_ context.Context) (bool, error) {
	return false, r.saw("EverOwned")
}

func (r *recorder) ListMessages(_ context.Context, q store.MessageQuery) ([]store.MessageRecord, error) {
	return nil, r.saw("ListMessages", q)
}

func (r *recorder) FailedMessage(_ context.Context, id string, now time.Time) (store.SealedMessage, error) {
	return store.SealedMessage{}, r.saw("FailedMessage", id, now)
}

func (r *recorder) RetryMessage(_ context.Context, c store.RetryMessage) error {
	return r.saw("RetryMessage", c)
}

func (r *recorder) Settings(_ context.Context) (store.StoredSettings, error) {
	return store.StoredSettings{}, r.saw("Settings")
}

func (r *recorder) PutSettings(_ context.Context, c store.PutSettings) (store.StoredSettings, error) {
	return store.StoredSettings{}, r.saw("PutSettings", c)
}

func (r *recorder) ListUsers(_ context.Context, q store.UserQuery) ([]store.User, error) {
	return nil, r.saw("ListUsers", q)
}

func (r *recorder) ListUserRows(_ context.Context, q store.UserQuery) ([]store.UserRow, error) {
	return nil, r.saw("ListUserRows", q)
}

func (r *recorder) CountUsers(_ context.Context, q store.UserQuery) (store.Total, error) {
	return store.Total{}, r.saw("CountUsers", q)
}

func (r *recorder) ListInvitations(_ context.Context, q store.InvitationQuery) ([]store.Token, error) {
	return nil, r.saw("ListInvitations", q)
}

func (r *recorder) AnonymizeUser(_ context.Context, c store.AnonymizeUser) (store.User, error) {
	return store.User{}, r.saw("AnonymizeUser", c)
}

func (r *recorder) Diagnose(_ context.Context) (store.StoreDiagnosis, error) {
	return store.StoreDiagnosis{}, r.saw("Diagnose")
}

func (r *recorder) PutJob(_ context.Context, j store.Job) error {
	return r.saw("PutJob", j)
}

func (r *recorder) AddJobChunk(_ context.Context, chunks ...store.JobChunk) error {
	return r.saw("AddJobChunk", chunks)
}

func (r *recorder) StartJob(_ context.Context, c store.StartJob) (store.Job, error) {
	return store.Job{}, r.saw("StartJob", c)
}

func (r *recorder) Job(_ context.Context, id string, now time.Time) (store.Job, error) {
	return store.Job{}, r.saw("Job", id, now)
}

func (r *recorder) JobChunk(_ context.Context, id string, n int) (store.JobChunk, error) {
	return store.JobChunk{}, r.saw("JobChunk", id, n)
}

func (r *recorder) ClaimJob(_ context.Context, c store.ClaimJob) (store.Job, error) {
	return store.Job{}, r.saw("ClaimJob", c)
}

func (r *recorder) FinishJobChunk(_ context.Context, f store.FinishJobChunk) (store.Job, error) {
	return store.Job{}, r.saw("FinishJobChunk", f)
}
