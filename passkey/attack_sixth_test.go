package passkey_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

const synced = authenticator.UserPresent | authenticator.UserVerified | authenticator.BackupEligible | authenticator.BackedUp

// strictWorld is newWorld with RefuseCopies.
func strictWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, key: authenticator.New(origin)}
	w.Env = authtest.NewOn(t, harness.NewStore(t), auth.WithPasskeys(passkey.New(passkey.Options{RefuseCopies: true})))
	w.ada = w.LoginAs(t, "ada@example.com")
	return w
}

// cloned returns a copy of an authenticator as a thief has it.
func cloned(a *authenticator.Authenticator) *authenticator.Authenticator {
	c := *a
	c.Passkeys = nil
	for _, p := range a.Passkeys {
		own := *p
		c.Passkeys = append(c.Passkeys, &own)
	}
	return &c
}

// as signs in with an authenticator.
func (w *world) as(key *authenticator.Authenticator) error {
	w.t.Helper()
	own := w.key
	defer func() { w.key = own }()
	w.key = key
	_, err := w.signIn()
	return err
}

// copies counts the events of counters that did not grow: those that are mailed, and the others.
func (w *world) copies() (mailed, quiet int) {
	w.t.Helper()
	list, err := w.Store.(store.Journal).Events(w.t.Context(), store.EventQuery{Limit: 200})
	w.must(err)
	for _, e := range list {
		switch {
		case e.Type != auth.EventPasskeyCounterNotIncreased:
		case e.Reason == "":
			mailed++
		default:
			quiet++
		}
	}
	return mailed, quiet
}

// A copy of a passkey of one device cannot say that it is synced, to keep its owner from being told.
func TestCopyCannotPassForSynced(t *testing.T) {
	for name, leaps := range map[string]uint32{"behind": 0, "ahead": 1000} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.key.Step = 1
			_, err := w.add(false)
			w.must(err)
			for range 3 {
				w.must(w.as(w.key))
			}
			thief := cloned(w.key)
			thief.Flags, thief.Step = synced, leaps
			w.must(w.as(thief))
			w.must(w.as(w.key)) // the owner, whom nobody locks out
			if mailed, quiet := w.copies(); mailed != 1 {
				t.Errorf("%d mails, %d events without one", mailed, quiet)
			}
			w.Mail(t, "ada@example.com", auth.KindPasskeyCopied)
		})
	}
}

// A copy that RefuseCopies refuses is reported like one that is let in, once for each assertion.
func TestRefusedCopiesAreReported(t *testing.T) {
	w := strictWorld(t)
	w.key.Step = 1
	_, err := w.add(false)
	w.must(err)
	w.must(w.as(w.key))
	thief := cloned(w.key)
	w.must(w.as(thief))
	p := w.begin() // the owner's passkey is behind now
	for range 3 {
		_, err = w.FinishPasskeySignIn(t.Context(), p)
		w.want(err, auth.CodeInvalidPasskey)
	}
	if mailed, quiet := w.copies(); mailed != 1 || quiet != 0 {
		t.Errorf("%d mails, %d events without one", mailed, quiet)
	}
	w.Mail(t, "ada@example.com", auth.KindPasskeyCopied)
	w.must(w.as(w.key)) // its counter has caught up
}

// Counters that roll back, stand still or overflow.
func TestCounters(t *testing.T) {
	for _, strict := range []bool{false, true} {
		for _, c := range []struct {
			before, now uint32
			copied      bool
		}{
			{0, 0, false}, {0, 7, false}, {0, math.MaxUint32, false}, {7, 8, false},
			{7, 0, true}, {7, 7, true}, {7, 6, true}, {math.MaxUint32, 0, true}, {math.MaxUint32, 1, true}, {math.MaxUint32, math.MaxUint32, true},
		} {
			w := newWorld(t)
			if strict {
				w = strictWorld(t)
			}
			_, err := w.add(false)
			w.must(err)
			k := w.key.Passkeys[0]
			k.Counter = c.before
			w.must(w.as(w.key))
			k.Counter = c.now
			err = w.as(w.key)
			if refused := errors.Is(err, auth.CodeInvalidPasskey); refused != (strict && c.copied) || err != nil && !refused {
				t.Errorf("strict %v, %d after %d: %v", strict, c.now, c.before, err)
			}
			if mailed, _ := w.copies(); (mailed > 0) != c.copied {
				t.Errorf("strict %v, %d after %d: %d mails", strict, c.now, c.before, mailed)
			}
			k.Counter = c.before // a rollback does not lower the stored counter
			if err := w.as(w.key); strict && c.before > 0 && err == nil {
				t.Errorf("strict, %d again: signed in", c.before)
			}
		}
	}
}

// Of parallel uses of a passkey and its copy with the same counter, one succeeds.
func TestParallelCopies(t *testing.T) {
	w := strictWorld(t)
	w.key.Step = 1
	_, err := w.add(false)
	w.must(err)
	var all []auth.FinishPasskeySignInParams
	own := w.key
	for range 6 {
		w.key = cloned(own)
		all = append(all, w.begin())
	}
	w.key = own
	var wg sync.WaitGroup
	var mu sync.Mutex
	wins := 0
	for _, p := range all {
		wg.Go(func() {
			if _, err := w.FinishPasskeySignIn(t.Context(), p); err == nil {
				mu.Lock()
				wins++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if wins != 1 {
		t.Errorf("%d of 6 copies signed in", wins)
	}
}

// An honest password manager that starts or stops to sync, and never counts, is let in
// without mails, also with RefuseCopies.
func TestPasskeysThatStartToSync(t *testing.T) {
	for _, strict := range []bool{false, true} {
		w := newWorld(t)
		if strict {
			w = strictWorld(t)
		}
		_, err := w.add(false)
		w.must(err)
		for _, flags := range []byte{synced, synced &^ authenticator.BackedUp, authenticator.UserPresent | authenticator.UserVerified, synced} {
			w.key.Flags = flags
			w.must(w.as(w.key))
		}
		if mailed, quiet := w.copies(); mailed+quiet != 0 {
			t.Errorf("%d mails, %d events", mailed, quiet)
		}
		list, err := w.ListPasskeys(t.Context(), w.caller())
		w.must(err)
		if !slices.ContainsFunc(list.Passkeys, func(p auth.PasskeyView) bool { return p.Synced }) {
			t.Error("not shown as synced")
		}
	}
}
