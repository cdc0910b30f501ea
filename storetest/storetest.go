// Package storetest checks implementations of store.Store.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return mystore.New(t) })
//	}
//
// Each subtest gets its own store and is named after the rule that it checks. A rule for
// every change is checked at every method that takes one, found by reflection over the
// interfaces; a method that this package does not know fails. Run it with -race, because
// the races are real parallel calls.
//
// A run takes one to two minutes on two busy cores.
//
// The groups of subtests, by the interface that they need:
//
//   - store.Store: users, ties, precedence, exact, fields, patches, credentials, sessions, keeping, devices,
//     refresh, order, tokens, codes, limits, upkeep, conditions, permissions, idempotency,
//     owners, first owner, races, kept, gone, nobody, proofs, exports, accounts
//   - store.FactorStore: factors, second factors
//   - store.Journal: events, outbox, message log
//   - store.ProjectStore: roles, keys, settings, stats
//   - store.AdminStore: imports, directory, rows, diagnosis, clearing, invitations,
//     anonymizing, jobs, session lists, impersonations, rotation
//
// Of groups with short names:
//
//   - exact: single rules about ids, hashes, times and results
//   - gone: a cancelled context stops every method, without a result
//   - keeping: a sign-in ends the sessions that are too many
//   - kept: records, ids and times come back as they were sent
//   - nobody: ids and keys that no row has are missing rows
//   - precedence: a method's own errors come in the order of its documentation
//   - ties: rows with equal times have one order
//
// A failure names the call, the result and the expected result. For structs and lists it
// shows only the elements that differ:
//
//	RevokeSessions(…): ended[0] = "0197…", want none
//	Session(…) after AdvanceSession(…): Session.Counter = 0, want 1
package storetest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/authmount/auth/store"
)

// checks are the subtests of one group, by name.
type checks map[string]func(*bench)

// Run checks store.Store and each optional interface that the store has. It logs these
// interfaces with the types that implement them; the groups of missing interfaces do not
// run. open returns an empty store and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	has := newBench(t, open(t))
	for _, c := range []struct {
		face   reflect.Type
		has    bool
		groups map[string]checks
	}{
		{reflect.TypeFor[store.Store](), true, map[string]checks{
			"users": users(), "ties": ties(), "precedence": precedence(), "exact": exact(), "fields": fields(), "patches": patches(), "credentials": credentials(), "sessions": merge(sessions(), sessionFilters()), "keeping": keepSessions(), "devices": merge(devices(), newDevices(), deviceTrust()), "refresh": merge(refresh(), replays()), "order": merge(sequenceChecks(), clockChecks(), handles()),
			"tokens": tokens(), "codes": merge(codes(), linkCodes()), "limits": limits(), "upkeep": merge(upkeep(), sweeps(has)),
			"conditions": conditions(has), "permissions": permissions(has), "idempotency": idempotency(has), "owners": owners(), "acceptance": acceptance(), "first owner": firstOwner(), "races": races(has),
			"kept": merge(kept(), records(), taken(has)), "gone": gone(has), "nobody": merge(nobody(has), nothing(), heldInOrder()),
			"proofs": proofs(), "exports": exports(has), "accounts": accounts(),
		}},
		{reflect.TypeFor[store.FactorStore](), has.factors != nil, map[string]checks{
			"factors":        merge(factors(), factorUse(), factorRemoval(), deviceFactors(), newDeviceFactors(), factorTrust(), born(), factorRecords(), factorsOfNobody()),
			"second factors": merge(factorKinds(), factorOrder(), factorUpdates(), completions()),
		}},
		{reflect.TypeFor[store.Journal](), has.journal != nil, map[string]checks{
			"events": merge(events(), eventLists(), eventRecords()), "outbox": merge(outbox(), outboxRecords(has)), "message log": messageLog(),
		}},
		{reflect.TypeFor[store.ProjectStore](), has.project != nil, map[string]checks{
			"roles": merge(roles(), roleRecords()), "keys": merge(keys(), keyRecords()), "settings": merge(settings(), settingsRecords()), "stats": stats(),
		}},
		{reflect.TypeFor[store.AdminStore](), has.admin != nil, map[string]checks{
			"imports": imports(), "directory": directory(), "rows": userRows(), "diagnosis": diagnosis(), "filling": filling(), "invitations": invitations(), "anonymizing": anonymizing(),
			"jobs": merge(jobs(), jobRecords()), "session lists": merge(sessionLists(), everySessionByOrder()), "impersonations": merge(impersonations(), impersonationRecords()), "rotation": rotation(),
		}},
	} {
		if !c.has {
			t.Logf("%s: none, its checks do not run", c.face)
			continue
		}
		t.Logf("%s: %s", c.face, found(has.under, c.face))
		for group, all := range c.groups {
			t.Run(group, func(t *testing.T) {
				for name, check := range all {
					t.Run(name, func(t *testing.T) { check(newBench(t, open(t))) })
				}
			})
		}
	}
}

// found names the type that implements an interface, and the types that wrap it.
func found(s store.Store, face reflect.Type) string {
	var through []string
	for s != nil {
		if reflect.TypeOf(s).Implements(face) {
			if len(through) == 0 {
				return fmt.Sprintf("%T", s)
			}
			return fmt.Sprintf("%T, through %s", s, strings.Join(through, ", "))
		}
		through = append(through, fmt.Sprintf("%T", s))
		w, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			break
		}
		s = w.Unwrap()
	}
	return "none"
}

func merge(groups ...checks) checks {
	all := checks{}
	for _, g := range groups {
		for name, check := range g {
			all[name] = check
		}
	}
	return all
}
