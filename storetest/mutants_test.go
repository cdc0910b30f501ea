package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/storetest"
)

// A suite that nothing fails proves nothing. Each of these stores is broken in
// one way that has hurt somebody, and the check named has to notice.
var mutants = map[string]struct {
	broken func(auth.Store) auth.Store
	caught string
}{
	"redeem is get, then update":        {func(s auth.Store) auth.Store { return getThenRedeem{s} }, "tokens/of parallel redemptions one wins"},
	"redeem burns on failure":           {func(s auth.Store) auth.Store { return burning{s} }, "tokens/an effect that fails leaves the token good"},
	"token expiry is forgotten":         {func(s auth.Store) auth.Store { return undying{s} }, "tokens/token expiry is exact"},
	"tokens serve any purpose":          {func(s auth.Store) auth.Store { return anyPurpose{s} }, "tokens/a token serves its purpose only"},
	"older tokens stay good":            {func(s auth.Store) auth.Store { return noSupersede{s} }, "tokens/a newer token supersedes"},
	"wrong codes are not counted":       {func(s auth.Store) auth.Store { return &codes{Store: s, uncounted: true} }, "tokens/a code dies with its tries"},
	"the right code wins beyond cap":    {func(s auth.Store) auth.Store { return &codes{Store: s, late: true} }, "tokens/a code dies with its tries"},
	"refresh is get, then put":          {func(s auth.Store) auth.Store { return getThenAdvance{s} }, "sessions/parallel refreshes advance once"},
	"reuse does not revoke":             {func(s auth.Store) auth.Store { return forgiving{s} }, "sessions/reuse ends the session for good"},
	"grace is a moment too long":        {func(s auth.Store) auth.Store { return longGrace{s} }, "sessions/the counter before is answered with the current one, within grace"},
	"sessions end a moment too late":    {func(s auth.Store) auth.Store { return late{s} }, "sessions/expiry is exact"},
	"revocation is rolled back":         {func(s auth.Store) auth.Store { return noRevoke{s} }, "sessions/revoking ends what matches and counts it"},
	"ended sessions are listed":         {func(s auth.Store) auth.Store { return &listsAll{Store: s} }, "sessions/sessions are listed, newest first"},
	"bans are ignored at sign-in":       {func(s auth.Store) auth.Store { return noBan{s} }, "sessions/a banned user gets no session"},
	"MFA is ignored at sign-in":         {func(s auth.Store) auth.Store { return noMFA{s} }, "sessions/a second factor is not skipped"},
	"a stale password makes a session":  {func(s auth.Store) auth.Store { return noCondition{s} }, "sessions/a session holds its condition"},
	"stale patches are applied":         {func(s auth.Store) auth.Store { return stalePatches{s} }, "users/a patch holds its conditions"},
	"dropping identities leaves them":   {func(s auth.Store) auth.Store { return keepsIdentities{s} }, "users/a patch drops every identity, but for the one it links"},
	"deletion leaves sessions":          {func(s auth.Store) auth.Store { return &noCascade{Store: s} }, "users/deleting takes everything along"},
	"a failed sign-up leaves a session": {func(s auth.Store) auth.Store { return halfSignUp{s} }, "users/a conflict keeps nothing"},
	"addresses are case-sensitive":      {func(s auth.Store) auth.Store { return caseSensitive{s} }, "users/addresses are one whatever their case"},
	"metadata is shared":                {func(s auth.Store) auth.Store { return &aliasing{Store: s} }, "users/values are copies"},
	"cancellation is ignored":           {func(s auth.Store) auth.Store { return deaf{s} }, "users/a caller who has gone changes nothing"},
	"draws are separate":                {func(s auth.Store) auth.Store { return separate{s} }, "limits/one refusal leaves all buckets alone"},
	"draws are ask, then take":          {func(s auth.Store) auth.Store { return askThenTake{s} }, "limits/parallel draws never exceed the burst"},
	"giving back overfills":             {func(s auth.Store) auth.Store { return &overfilling{Store: s} }, "limits/giving back never overfills"},
	"a TOTP step is get, then put":      {func(s auth.Store) auth.Store { return stepRace{s, factorsOf(s)} }, "factors/of parallel uses of a step one wins"},
	"recovery codes are get, then put":  {func(s auth.Store) auth.Store { return recoveryRace{s, factorsOf(s)} }, "factors/of parallel uses of a recovery code one wins"},
	"older steps pass":                  {func(s auth.Store) auth.Store { return anyStep{s, factorsOf(s)} }, "factors/a step is used once, and never an older one"},
	"updates drop the factor":           {func(s auth.Store) auth.Store { return dropsFactor{s, factorsOf(s)} }, "factors/a patch that does not name the factor leaves it alone"},
	"updates drop recovery codes":       {func(s auth.Store) auth.Store { return dropsCodes{s, factorsOf(s)} }, "factors/a patch that does not name the factor leaves it alone"},
	"refused updates drop the factor":   {func(s auth.Store) auth.Store { return refusedDrops{s, factorsOf(s)} }, "factors/a patch that is refused leaves the factor alone"},
	"patches only hide the factor":      {func(s auth.Store) auth.Store { return hidesFactor{s, factorsOf(s)} }, "factors/a patch removes the factor"},
	"recovery codes outlive a factor":   {func(s auth.Store) auth.Store { return &heirloom{Store: s, FactorStore: factorsOf(s)} }, "factors/removing forgets everything"},
	"sign-ins move the step":            {func(s auth.Store) auth.Store { return movesStep{s, factorsOf(s)} }, "factors/a session's life leaves the factor alone"},
	"new codes raise the revision":      {func(s auth.Store) auth.Store { return codesRaise{s, factorsOf(s)} }, "factors/using a factor leaves the rest of it and its user alone"},
	"raising moves the counter":         {func(s auth.Store) auth.Store { return raisesCounter{s, factorsOf(s)} }, "factors/raising lifts a live session"},
	"enabling brings sessions back":     {func(s auth.Store) auth.Store { return revivesSession{s, factorsOf(s)} }, "factors/an enabling that fails changes nothing"},
	"secrets are shared": {func(s auth.Store) auth.Store {
		return &sharesSecret{Store: s, FactorStore: factorsOf(s), kept: map[string][]byte{}}
	}, "factors/factors are copies"},
	"links replace one another":    {func(s auth.Store) auth.Store { return oneIdentity{s} }, "users/a patch keeps what it does not name"},
	"updates drop the password":    {func(s auth.Store) auth.Store { return dropsPassword{s} }, "users/a patch keeps what it does not name"},
	"updates end sessions":         {func(s auth.Store) auth.Store { return endsSessions{s} }, "users/a patch keeps what it does not name"},
	"refused updates revoke":       {func(s auth.Store) auth.Store { return refusedRevokes{s} }, "users/a patch that is refused changes nothing"},
	"sign-ins raise the revision":  {func(s auth.Store) auth.Store { return signInRaises{s} }, "sessions/a session's life leaves its user alone"},
	"refreshes raise the revision": {func(s auth.Store) auth.Store { return refreshRaises{s} }, "sessions/a session's life leaves its user alone"},
	"sign-outs raise the revision": {func(s auth.Store) auth.Store { return signOutRaises{s} }, "sessions/a session's life leaves its user alone"},
	"refreshes lower the level":    {func(s auth.Store) auth.Store { return lowers{s} }, "sessions/refreshing moves the counter and the end"},
	"session ids are given again":  {func(s auth.Store) auth.Store { return anyID{s} }, "sessions/a session id is given once"},
	"tokens are shared":            {func(s auth.Store) auth.Store { return &sharesTokens{Store: s, kept: map[string][]byte{}} }, "tokens/tokens are copies"},
	"the last wait counts":         {func(s auth.Store) auth.Store { return lastWait{s} }, "limits/the longest wait is told"},
	"sweeps take the living":       {func(s auth.Store) auth.Store { return greedy{s} }, "upkeep/a sweep deletes what is over and nothing else"},
}

const mutantEnv = "STORETEST_MUTANT"

// TestSuiteBites runs the suite on every mutant, each in a process of its own,
// because the suite is meant to fail there.
func TestSuiteBites(t *testing.T) {
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutant$") //nolint:gosec // this very binary
			cmd.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			want := "--- FAIL: TestMutant/" + strings.ReplaceAll(m.caught, " ", "_")
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%q did not notice:\n%s", m.caught, out)
			}
		})
	}
}

// TestMutant is what TestSuiteBites runs; by itself it has nothing to do.
func TestMutant(t *testing.T) {
	m, ok := mutants[os.Getenv(mutantEnv)]
	if !ok {
		return
	}
	storetest.Run(t, func(*testing.T) auth.Store { return m.broken(memstore.New()) })
}

// yield lets others in between the two halves of what should be one step, long
// enough that they come on a busy machine, too.
func yield() { <-time.After(5 * time.Millisecond) }

type getThenRedeem struct{ auth.Store }

func (s getThenRedeem) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	t, err := s.PeekToken(ctx, r.Purpose, r.Hash, r.Now)
	if err != nil || r.Patch == nil {
		return s.Store.RedeemToken(ctx, r)
	}
	yield()
	u, err := s.UpdateUser(ctx, t.UserID, *r.Patch, r.Now)
	if err == nil {
		_, _, _ = s.Store.RedeemToken(ctx, auth.Redemption{Purpose: r.Purpose, Hash: r.Hash, Now: r.Now})
	}
	return t, u, err
}

type burning struct{ auth.Store }

func (s burning) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	t, u, err := s.Store.RedeemToken(ctx, r)
	if errors.Is(err, auth.ErrStale) {
		_, _, _ = s.Store.RedeemToken(ctx, auth.Redemption{Purpose: r.Purpose, Hash: r.Hash, Now: r.Now})
	}
	return t, u, err
}

type undying struct{ auth.Store }

func (s undying) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	r.Now = time.Time{}
	return s.Store.RedeemToken(ctx, r)
}

type anyPurpose struct{ auth.Store }

func (s anyPurpose) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	for _, other := range []auth.Purpose{p, auth.PurposeMagicLink, auth.PurposeReset} {
		if t, err := s.Store.PeekToken(ctx, other, hash, now); err == nil {
			return t, nil
		}
	}
	return s.Store.PeekToken(ctx, p, hash, now)
}

type noSupersede struct{ auth.Store }

func (s noSupersede) PutToken(ctx context.Context, t auth.Token) error {
	if t.MaxTries == 0 {
		t.Subject = ""
	}
	return s.Store.PutToken(ctx, t)
}

// codes remembers what it was given, which a store should not need to.
type codes struct {
	auth.Store
	uncounted, late bool
	mu              sync.Mutex
	last            auth.Token
}

func (s *codes) PutToken(ctx context.Context, t auth.Token) error {
	s.mu.Lock()
	s.last = t
	s.mu.Unlock()
	return s.Store.PutToken(ctx, t)
}

func (s *codes) TryCode(ctx context.Context, p auth.Purpose, subject string, hash []byte, now time.Time) (auth.Token, error) {
	s.mu.Lock()
	right := bytes.Equal(hash, s.last.Hash)
	last := s.last
	s.mu.Unlock()
	if s.uncounted && !right {
		return auth.Token{}, auth.ErrWrongCode
	}
	t, err := s.Store.TryCode(ctx, p, subject, hash, now)
	if s.late && right && errors.Is(err, auth.ErrTooManyTries) {
		return last, nil
	}
	return t, err
}

type getThenAdvance struct{ auth.Store }

func (s getThenAdvance) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	sess, _, err := s.Session(ctx, a.SessionID, a.Now)
	if err != nil || a.Counter != sess.Counter {
		return s.Store.AdvanceSession(ctx, a)
	}
	yield()
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	if err == nil && sess.Counter == a.Counter+1 { // somebody else's step may be among these: take another
		a.Counter++
		sess, u, err = s.Store.AdvanceSession(ctx, a)
	}
	return sess, u, err
}

type forgiving struct{ auth.Store }

func (s forgiving) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	if sess, u, err := s.Session(ctx, a.SessionID, a.Now); err == nil && a.Counter+1 < sess.Counter {
		return sess, u, auth.ErrReused
	}
	return s.Store.AdvanceSession(ctx, a)
}

type longGrace struct{ auth.Store }

func (s longGrace) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	if a.Grace > 0 {
		a.Grace += time.Microsecond
	}
	return s.Store.AdvanceSession(ctx, a)
}

type late struct{ auth.Store }

func (s late) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	return s.Store.Session(ctx, id, now.Add(-time.Microsecond))
}

type noRevoke struct{ auth.Store }

func (s noRevoke) RevokeSessions(ctx context.Context, userID string, f auth.SessionFilter, now time.Time) (int, error) {
	list, err := s.Sessions(ctx, userID, now)
	n := 0
	for _, sess := range list {
		if (f.ID == "" || f.ID == sess.ID) && f.Except != sess.ID {
			n++
		}
	}
	return n, err
}

type listsAll struct {
	auth.Store
	mu  sync.Mutex
	all []auth.Session
}

func (s *listsAll) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	s.mu.Lock()
	s.all = append([]auth.Session{n.Session}, s.all...)
	s.mu.Unlock()
	return s.Store.CreateSession(ctx, n)
}

func (s *listsAll) Sessions(context.Context, string, time.Time) ([]auth.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]auth.Session{}, s.all...), nil
}

type noBan struct{ auth.Store }

func (s noBan) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if errors.Is(err, auth.ErrBanned) {
		if _, err := s.UpdateUser(ctx, n.Session.UserID, auth.UserPatch{BannedUntil: &time.Time{}}, n.Session.CreatedAt); err != nil {
			return u, err
		}
		return s.Store.CreateSession(ctx, n)
	}
	return u, err
}

type noMFA struct{ auth.Store }

func (s noMFA) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	n.Session.AAL = auth.LevelAAL2
	return s.Store.CreateSession(ctx, n)
}

type noCondition struct{ auth.Store }

func (s noCondition) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	n.IfPasswordHash = nil
	return s.Store.CreateSession(ctx, n)
}

type stalePatches struct{ auth.Store }

func (s stalePatches) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	p.IfRevision, p.IfPasswordHash = nil, nil
	return s.Store.UpdateUser(ctx, id, p, now)
}

type noCascade struct {
	auth.Store
	mu   sync.Mutex
	left map[string]auth.Session
}

func (s *noCascade) DeleteUser(ctx context.Context, id string) error {
	list, err := s.Sessions(ctx, id, time.Time{})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.left = map[string]auth.Session{}
	for _, sess := range list {
		s.left[sess.ID] = sess
	}
	s.mu.Unlock()
	return s.Store.DeleteUser(ctx, id)
}

func (s *noCascade) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	s.mu.Lock()
	sess, ok := s.left[id]
	s.mu.Unlock()
	if ok {
		return sess, auth.User{ID: sess.UserID}, nil
	}
	return s.Store.Session(ctx, id, now)
}

type halfSignUp struct{ auth.Store }

func (s halfSignUp) CreateUser(ctx context.Context, n auth.NewUser) (auth.User, error) {
	u, err := s.Store.CreateUser(ctx, n)
	if errors.Is(err, auth.ErrConflict) && n.Session != nil {
		n.User.Email, n.User.Identities = "", nil
		_, _ = s.Store.CreateUser(ctx, n)
	}
	return u, err
}

type caseSensitive struct{ auth.Store }

func (s caseSensitive) User(ctx context.Context, k auth.UserKey) (auth.User, error) {
	u, err := s.Store.User(ctx, k)
	if err == nil && k.Email != "" && k.Email != u.Email {
		return auth.User{}, auth.ErrNotFound
	}
	return u, err
}

type aliasing struct {
	auth.Store
	mu   sync.Mutex
	kept map[string]map[string]any
}

func (s *aliasing) CreateUser(ctx context.Context, n auth.NewUser) (auth.User, error) {
	s.mu.Lock()
	s.kept = map[string]map[string]any{n.User.ID: n.User.UserMetadata}
	s.mu.Unlock()
	return s.Store.CreateUser(ctx, n)
}

func (s *aliasing) User(ctx context.Context, k auth.UserKey) (auth.User, error) {
	u, err := s.Store.User(ctx, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.kept[u.ID]; m != nil {
		u.UserMetadata = m
	}
	return u, err
}

type deaf struct{ auth.Store }

func (s deaf) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	return s.Store.UpdateUser(context.WithoutCancel(ctx), id, p, now)
}

type separate struct{ auth.Store }

func (s separate) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	all := auth.Decision{Allowed: true}
	for _, d := range draws {
		one, err := s.Store.Take(ctx, []auth.Draw{d}, now)
		if err != nil {
			return one, err
		}
		all.Allowed, all.RetryAfter = all.Allowed && one.Allowed, max(all.RetryAfter, one.RetryAfter)
		all.Remaining = append(all.Remaining, one.Remaining...)
	}
	return all, nil
}

type askThenTake struct{ auth.Store }

func (s askThenTake) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	var ask []auth.Draw
	for _, d := range draws {
		d.Cost = 0
		ask = append(ask, d)
	}
	asked, err := s.Store.Take(ctx, ask, now)
	if err != nil || !asked.Allowed {
		return asked, err
	}
	yield()
	d, err := s.Store.Take(ctx, draws, now)
	d.Allowed = true
	return d, err
}

type overfilling struct {
	auth.Store
	mu     sync.Mutex
	credit int
}

func (s *overfilling) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.Store.Take(ctx, draws, now)
	if draws[0].Cost < 0 {
		s.credit -= draws[0].Cost
	} else if !d.Allowed && s.credit > 0 {
		d.Allowed = true
	}
	return d, err
}

type oneIdentity struct{ auth.Store }

func (s oneIdentity) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if err != nil || p.Link == nil {
		return u, err
	}
	for _, i := range u.Identities {
		if i.Provider == p.Link.Provider && i.Subject != p.Link.Subject {
			u, err = s.Store.UpdateUser(ctx, id, auth.UserPatch{Unlink: &auth.UserKey{Provider: i.Provider, Subject: i.Subject}}, now)
		}
	}
	return u, err
}

type dropsPassword struct{ auth.Store }

func (s dropsPassword) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	if p.PasswordHash == nil {
		p.PasswordHash = new(string)
	}
	return s.Store.UpdateUser(ctx, id, p, now)
}

type endsSessions struct{ auth.Store }

func (s endsSessions) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	if p.Revoke == nil {
		p.Revoke = &auth.SessionFilter{}
	}
	return s.Store.UpdateUser(ctx, id, p, now)
}

type refusedRevokes struct{ auth.Store }

func (s refusedRevokes) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if err != nil && p.Revoke != nil {
		_, _ = s.RevokeSessions(ctx, id, *p.Revoke, now)
	}
	return u, err
}

type signInRaises struct{ auth.Store }

func (s signInRaises) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if err == nil {
		_, err = s.UpdateUser(ctx, u.ID, auth.UserPatch{}, u.UpdatedAt)
	}
	return u, err
}

type refreshRaises struct{ auth.Store }

func (s refreshRaises) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	if err == nil {
		_, err = s.UpdateUser(ctx, u.ID, auth.UserPatch{}, u.UpdatedAt)
	}
	return sess, u, err
}

type signOutRaises struct{ auth.Store }

func (s signOutRaises) RevokeSessions(ctx context.Context, userID string, f auth.SessionFilter, now time.Time) (int, error) {
	n, err := s.Store.RevokeSessions(ctx, userID, f, now)
	if n > 0 {
		_, err = s.UpdateUser(ctx, userID, auth.UserPatch{}, now)
	}
	return n, err
}

type lowers struct{ auth.Store }

func (s lowers) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	sess.AAL = auth.LevelAAL1
	return sess, u, err
}

type anyID struct{ auth.Store }

func (s anyID) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if errors.Is(err, auth.ErrConflict) {
		return s.User(ctx, auth.ByID(n.Session.UserID))
	}
	return u, err
}

type sharesTokens struct {
	auth.Store
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *sharesTokens) PutToken(ctx context.Context, t auth.Token) error {
	s.mu.Lock()
	s.kept[string(t.Hash)] = t.Data
	s.mu.Unlock()
	return s.Store.PutToken(ctx, t)
}

func (s *sharesTokens) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	t, err := s.Store.PeekToken(ctx, p, hash, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Data = s.kept[string(hash)]
	return t, err
}

type lastWait struct{ auth.Store }

func (s lastWait) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	d, err := s.Store.Take(ctx, draws, now)
	if err != nil || d.Allowed {
		return d, err
	}
	for _, draw := range draws {
		if one, err := s.Store.Take(ctx, []auth.Draw{draw}, now); err == nil && !one.Allowed {
			d.RetryAfter = one.RetryAfter
		}
	}
	return d, nil
}

type greedy struct{ auth.Store }

func (s greedy) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.Store.Sweep(ctx, now.Add(24*time.Hour), limit)
}

// factorsOf is the second half of a store, to be embedded beside the first.
func factorsOf(s auth.Store) auth.FactorStore {
	f, _ := s.(auth.FactorStore)
	return f
}

type stepRace struct {
	auth.Store
	auth.FactorStore
}

func (s stepRace) UseTOTPStep(ctx context.Context, userID string, step int64) error {
	f, err := s.Factor(ctx, userID)
	if err != nil || !f.Enabled || step <= f.LastStep {
		return auth.ErrStale
	}
	yield()
	_ = s.FactorStore.UseTOTPStep(ctx, userID, step)
	return nil
}

type recoveryRace struct {
	auth.Store
	auth.FactorStore
}

func (s recoveryRace) UseRecoveryCode(ctx context.Context, userID string, hash []byte) (int, error) {
	f, err := s.Factor(ctx, userID)
	if err != nil || f.RecoveryLeft < 2 {
		return s.FactorStore.UseRecoveryCode(ctx, userID, hash)
	}
	yield()
	_, _ = s.FactorStore.UseRecoveryCode(ctx, userID, hash)
	return f.RecoveryLeft - 1, nil
}

type anyStep struct {
	auth.Store
	auth.FactorStore
}

func (s anyStep) UseTOTPStep(ctx context.Context, userID string, step int64) error {
	if err := s.FactorStore.UseTOTPStep(ctx, userID, step); err == nil {
		return nil
	}
	f, err := s.Factor(ctx, userID)
	if err == nil && f.Enabled && step < f.LastStep {
		return nil
	}
	return auth.ErrStale
}

type keepsIdentities struct{ auth.Store }

func (s keepsIdentities) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	p.DropIdentities = false
	return s.Store.UpdateUser(ctx, id, p, now)
}

type dropsFactor struct {
	auth.Store
	auth.FactorStore
}

func (s dropsFactor) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	p.RemoveFactor = true
	return s.Store.UpdateUser(ctx, id, p, now)
}

type dropsCodes struct {
	auth.Store
	auth.FactorStore
}

func (s dropsCodes) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if u.MFAEnabled {
		_ = s.PutRecoveryCodes(ctx, id, nil)
	}
	return u, err
}

type refusedDrops struct {
	auth.Store
	auth.FactorStore
}

func (s refusedDrops) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if err != nil && p.RemoveFactor {
		_, _ = s.RemoveFactor(ctx, id, now)
	}
	return u, err
}

type hidesFactor struct {
	auth.Store
	auth.FactorStore
}

func (s hidesFactor) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	hide := p.RemoveFactor
	p.RemoveFactor = false
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	u.MFAEnabled = u.MFAEnabled && !hide
	return u, err
}

type heirloom struct {
	auth.Store
	auth.FactorStore
	mu    sync.Mutex
	codes [][]byte
}

func (s *heirloom) EnableFactor(ctx context.Context, e auth.EnableFactor) (auth.User, error) {
	s.mu.Lock()
	e.Recovery = append(s.codes, e.Recovery...)
	s.codes = e.Recovery
	s.mu.Unlock()
	return s.FactorStore.EnableFactor(ctx, e)
}

type movesStep struct {
	auth.Store
	auth.FactorStore
}

func (s movesStep) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if f, none := s.Factor(ctx, n.Session.UserID); err == nil && none == nil && f.Enabled {
		_ = s.UseTOTPStep(ctx, f.UserID, f.LastStep+1)
	}
	return u, err
}

type codesRaise struct {
	auth.Store
	auth.FactorStore
}

func (s codesRaise) PutRecoveryCodes(ctx context.Context, userID string, hashes [][]byte) error {
	if err := s.FactorStore.PutRecoveryCodes(ctx, userID, hashes); err != nil {
		return err
	}
	_, err := s.UpdateUser(ctx, userID, auth.UserPatch{}, time.Time{})
	return err
}

type raisesCounter struct {
	auth.Store
	auth.FactorStore
}

func (s raisesCounter) RaiseSession(ctx context.Context, id string, proof auth.AMR, now time.Time) (auth.Session, auth.User, error) {
	sess, u, err := s.FactorStore.RaiseSession(ctx, id, proof, now)
	if err != nil {
		return sess, u, err
	}
	return s.AdvanceSession(ctx, auth.Advance{SessionID: id, Counter: sess.Counter, Now: now, IdleUntil: sess.IdleUntil})
}

type revivesSession struct {
	auth.Store
	auth.FactorStore
}

func (s revivesSession) EnableFactor(ctx context.Context, e auth.EnableFactor) (auth.User, error) {
	u, err := s.FactorStore.EnableFactor(ctx, e)
	if _, _, ended := s.Session(ctx, e.Session.ID, e.Now); errors.Is(err, auth.ErrStale) && errors.Is(ended, auth.ErrSessionEnded) {
		e.Session.ID += "again"
		return s.FactorStore.EnableFactor(ctx, e)
	}
	return u, err
}

type sharesSecret struct {
	auth.Store
	auth.FactorStore
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *sharesSecret) PutFactor(ctx context.Context, userID string, sealed []byte, now time.Time) error {
	s.mu.Lock()
	s.kept[userID] = sealed
	s.mu.Unlock()
	return s.FactorStore.PutFactor(ctx, userID, sealed, now)
}

func (s *sharesSecret) Factor(ctx context.Context, userID string) (auth.Factor, error) {
	f, err := s.FactorStore.Factor(ctx, userID)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Secret = s.kept[userID]
	return f, err
}
