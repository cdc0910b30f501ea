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
	"a stale revision makes a session":  {func(s auth.Store) auth.Store { return noRevision{s} }, "sessions/a session holds its revision"},
	"sessions slip past a revocation":   {func(s auth.Store) auth.Store { return slipping{s} }, "sessions/no session outlives the patch that ends them all"},
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

// factorsOf is the second half of a store, to be embedded beside the first.
func factorsOf(s auth.Store) auth.FactorStore {
	f, _ := s.(auth.FactorStore)
	return f
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
