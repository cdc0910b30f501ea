package hostile_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// reference is the result of a row's request without a disturbance.
type reference struct {
	*harness.Played
	then ending // if it is made once more
}

// ending is the state after a disturbed request was repeated without a disturbance.
type ending struct {
	answer  string
	account string
	session string // whether the session is alive
	refresh string // whether its newest refresh token is valid
}

// again repeats the request.
func again(p *harness.Played) ending {
	e := ending{answer: harness.CodeOf(p.Request())}
	e.account = p.AccountText(p.Look(p.T.Context()))
	if p.Session.AccessToken != "" {
		e.session = harness.CodeOf(p.Evil.Send("GET", "/me", nil, p.Authorization()))
	}
	if n := len(p.Evil.Refresh); n > 0 {
		e.refresh = harness.CodeOf(p.Evil.Send("POST", "/refresh", map[string]any{"refresh_token": p.Evil.Refresh[n-1]}))
	}
	return e
}

// invariants hold after every trial, however its request ended.
func invariants() map[string]func(*harness.Played, *reference) []string {
	return map[string]func(*harness.Played, *reference) []string{
		"no answer is a mistake of ours":   answersAreOurs,
		"what succeeds was drawn for":      successIsDrawn,
		"guesses are counted":              guessesAreCounted,
		"a change has its event":           changesHaveEvents,
		"a change is told to the owner":    ownersAreTold,
		"a change comes whole, or not":     changesAreWhole,
		"no fault changes without success": faultsChangeNothing,
	}
}

// answersAreOurs: no 500, and a 503 only for a store that failed, with the time to come
// back. A change that was committed is reported.
func answersAreOurs(p *harness.Played, _ *reference) (list []string) {
	for _, a := range p.Answers {
		switch {
		case a.Status == http.StatusOK && len(a.Body) == 0:
			list = append(list, "answers 200 and nothing")
		case a.Status < http.StatusInternalServerError:
		case a.Status == http.StatusServiceUnavailable && p.Hit && a.Header.Get("Retry-After") != "":
		case strings.HasSuffix(harness.CodeOf(a), string(auth.CodeProviderError)) && p.Hit: // the caller had left
		default:
			list = append(list, fmt.Sprintf("answers %d: %s", a.Status, a.Body))
		}
	}
	return list
}

// succeeds reports whether all answers are those of an undisturbed request.
func succeeds(p *harness.Played, ref *reference) bool {
	return !slices.ContainsFunc(p.Answers, func(a *harness.Answer) bool { return harness.ResultOf(a) != harness.ResultOf(ref.Answer()) })
}

// successIsDrawn: a request with the answer of an undisturbed one drew from each limit as an
// undisturbed one does. A notice draws after its change is committed, and no limit undoes
// the change. So a notice may lack its draw, if that very draw fails.
func successIsDrawn(p *harness.Played, ref *reference) (list []string) {
	if !succeeds(p, ref) {
		return nil
	}
	for limit, n := range ref.Drawn {
		switch {
		case strings.HasPrefix(limit, "Notices") && p.Struck[limit]:
		case strings.HasPrefix(limit, "Send") && len(p.Mails) < len(ref.Mails): // an unsent message needs no draw
		case p.Drawn[limit] < n:
			list = append(list, fmt.Sprintf("answers %s, with %d of %d draws from %s", harness.ResultOf(p.Answer()), p.Drawn[limit], n, limit))
		}
	}
	return list
}

// changesAreWhole: a repeated request ends in the state of a request that was made once,
// twice or, if the secret that it used up is gone, not at all. The caller can continue from
// there as in that state.
func changesAreWhole(p *harness.Played, ref *reference) (list []string) {
	e := again(p)
	fine := []string{ref.then.account, ref.AccountText(ref.Is), p.AccountText(p.Was)}
	if !slices.Contains(fine, e.account) {
		list = append(list, fmt.Sprintf("asked again (%s), the account is\n\t%s, not\n\t%s", e.answer, e.account, strings.Join(fine, " or\n\t")))
	}
	if strings.HasPrefix(e.answer, "5") {
		list = append(list, "asked again, it answers "+e.answer)
	}
	nothingCame := !strings.HasPrefix(e.answer, "2") && e.account == p.AccountText(p.Was) && e.session == "200"
	if e.session != ref.then.session && !nothingCame {
		list = append(list, fmt.Sprintf("asked again (%s), the session is %s, not %s", e.answer, e.session, ref.then.session))
	}
	goesOn := p.Row.Session || strings.HasPrefix(e.answer, "2") || p.Answer().Status == ref.Answer().Status
	if e.refresh != ref.then.refresh && e.refresh != "" && goesOn {
		list = append(list, fmt.Sprintf("asked again (%s), the refresh token is %s, not %s", e.answer, e.refresh, ref.then.refresh))
	}
	return list
}

// faultsChangeNothing: if the store reported no change, the data is unchanged.
func faultsChangeNothing(p *harness.Played, _ *reference) (list []string) {
	for _, c := range p.Calls {
		if c.Err == nil {
			return nil
		}
	}
	if p.Tried > 0 {
		return nil
	}
	return p.Is.Changed(p.Was)
}

// way is a kind of credential change.
type way struct {
	what   string
	events []auth.EventType // one of which reports it
}

// changedWays returns the credentials of the account that changed.
func changedWays(p *harness.Played) (list []way) {
	was, is := p.Was.Credentials, p.Is.Credentials
	add := func(different bool, what string, events ...auth.EventType) {
		if different {
			list = append(list, way{what, events})
		}
	}
	switch {
	case was.User.ID == "" && is.User.ID == "":
		return nil
	case was.User.ID == "":
		add(true, "a new account", auth.EventSignedUp)
		return list
	case is.User.ID == "":
		add(true, "no account", auth.EventUserDeleted)
		return list
	}
	none := is.PasswordHash == "" && was.PasswordHash != ""
	moved := was.User.Email != is.User.Email
	rehashed := was.User.CredentialRevision == is.User.CredentialRevision
	add(none, "no password", auth.EventTakenOver, auth.EventAccountSecured)
	add(was.PasswordHash != is.PasswordHash && !none && !rehashed, "another password", auth.EventPasswordChanged, auth.EventPasswordReset)
	add(moved && is.User.Email != "", "another address", auth.EventEmailChanged)
	add(moved && is.User.Email == "", "no address", auth.EventTakenOver)
	add(!was.User.EmailVerified() && is.User.EmailVerified() && !moved, "a proved address", auth.EventEmailVerified)
	add(was.User.Phone != is.User.Phone && is.User.Phone != "", "another number", auth.EventPhoneVerified)
	add(was.User.Phone != is.User.Phone && is.User.Phone == "", "no number", auth.EventUserUpdated, auth.EventTakenOver)
	add(!was.User.PhoneVerified() && is.User.PhoneVerified(), "a proved number", auth.EventPhoneVerified)
	subjects := func(u auth.User) map[string]bool {
		m := map[string]bool{}
		for _, i := range u.Identities {
			m[i.Provider+" "+i.Subject] = true
		}
		return m
	}
	before, after := subjects(was.User), subjects(is.User)
	add(len(without(after, before)) > 0, "another identity", auth.EventIdentityLinked)
	add(len(without(before, after)) > 0, "one identity less", auth.EventIdentityUnlinked, auth.EventTakenOver)
	add(!was.User.MFAEnabled && is.User.MFAEnabled, "a second factor", auth.EventMFAEnabled)
	add(was.User.MFAEnabled && !is.User.MFAEnabled, "no second factor", auth.EventMFADisabled, auth.EventTakenOver)
	left, now := p.Was.Factors.RecoveryLeft, p.Is.Factors.RecoveryLeft
	add(now < left && is.User.MFAEnabled, "fewer recovery codes", auth.EventRecoveryCodeUsed, auth.EventRecoveryCodesReplaced)
	replaced := slices.ContainsFunc(p.Calls, func(c harness.Call) bool { return c.Method == "PutRecoveryCodes" && c.Err == nil })
	add(replaced || (now > left && was.User.MFAEnabled), "other recovery codes", auth.EventRecoveryCodesReplaced)
	return list
}

func without(a, b map[string]bool) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(a)), func(k string) bool { return b[k] })
}

// changesHaveEvents: for each change of the account's credentials, the store has the event
// that reports it.
func changesHaveEvents(p *harness.Played, _ *reference) (list []string) {
	for _, w := range changedWays(p) {
		if !slices.ContainsFunc(p.Events, func(e auth.Event) bool { return e.UserID == p.Id && slices.Contains(w.events, e.Type) }) {
			list = append(list, fmt.Sprintf("%s, and none of the events %v", w.what, w.events))
		}
	}
	return list
}

// outlives lets the account be lost and returns everything that the former holder still has of it.
func outlives(p *harness.Played, a harness.Act) []string {
	p.Start = p.Was
	if p.Row.Kind == harness.OnStolen { // changes to an account persist while it was theirs
		p.Mfa = p.Look(p.T.Context()).Credentials.User.MFAEnabled
	}
	p.Lose(p.T.Context(), a)
	if !p.Lost || (p.Row.Kind == harness.OnStolen && p.Before.Credentials.User.Phone != p.Was.Credentials.User.Phone) {
		return nil // a verified phone number is a credential of its own, which stays
	}
	return p.Leftovers(a)
}
