// Package storetest holds a store.Store to its promises.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return mystore.New(t) })
//	}
//
// Each subtest gets a store of its own and is named after the promise it checks.
// A rule that holds for every change is checked at every method that takes one,
// found by reflection over the interfaces: a method that this package does not
// know fails. Run it with -race: the races are real parallel calls.
//
// A failure names the call, what came and what was wanted; of structs and lists
// it tells only the members that differ:
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

// checks are the promises of one group, by name.
type checks map[string]func(*bench)

// Run checks every promise of store.Store, and of each capability that the store
// has: store.FactorStore, EventStore, OutboxStore, RoleStore, KeyStore,
// ImportStore, RotationStore, ProofStore, ExportStore, AccountStore, DirectoryStore, LimitStore,
// StatsStore, SettingsStore, JobStore, DiagnosticStore, ImpersonationStore, SessionListStore,
// InvitationStore, AnonymizeStore, MessageLogStore and FirstOwnerStore.
// It logs which those are
// and which type has them. open makes an empty store, and
// arranges for its end with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	run := func(t *testing.T, group string, all checks) {
		t.Helper()
		t.Run(group, func(t *testing.T) {
			for name, check := range all {
				t.Run(name, func(t *testing.T) { check(newBench(t, open(t))) })
			}
		})
	}
	has := newBench(t, open(t))
	for group, all := range map[string]checks{
		"users": users(), "fields": fields(), "patches": patches(), "credentials": credentials(), "sessions": sessions(), "keeping": keepSessions(), "devices": merge(devices(), newDevices(), deviceTrust()), "refresh": merge(refresh(), replays()), "order": merge(sequenceChecks(), clockChecks(), handles()),
		"tokens": tokens(), "codes": merge(codes(), linkCodes()), "limits": limits(), "upkeep": merge(upkeep(), sweeps(has)),
		"conditions": conditions(has), "permissions": permissions(has), "idempotency": idempotency(has), "owners": owners(), "races": races(has),
		"kept": merge(kept(), records(), taken(has)), "gone": gone(has), "nobody": merge(nobody(has), nothing(), heldInOrder()),
	} {
		run(t, group, all)
	}
	for _, c := range []struct {
		name   string
		face   reflect.Type
		has    bool
		checks checks
	}{
		{"factors", reflect.TypeFor[store.FactorStore](), has.factors != nil, merge(factors(), factorUse(), factorRemoval(), deviceFactors(), newDeviceFactors(), factorTrust(), born(), factorRecords(), factorsOfNobody())},
		{"second factors", reflect.TypeFor[store.FactorStore](), has.factors != nil, merge(factorKinds(), factorOrder(), completions())},
		{"events", reflect.TypeFor[store.EventStore](), has.events != nil, merge(events(), eventLists(), eventRecords())},
		{"outbox", reflect.TypeFor[store.OutboxStore](), has.outbox != nil, merge(outbox(), outboxRecords(has))},
		{"roles", reflect.TypeFor[store.RoleStore](), has.roles != nil, merge(roles(), roleRecords())},
		{"keys", reflect.TypeFor[store.KeyStore](), has.keys != nil, merge(keys(), keyRecords())},
		{"exports", reflect.TypeFor[store.ExportStore](), has.exports != nil, exports(has)},
		{"accounts", reflect.TypeFor[store.AccountStore](), has.whose != nil, accounts()},
		{"proofs", reflect.TypeFor[store.ProofStore](), has.proofs != nil, proofs()},
		{"imports", reflect.TypeFor[store.ImportStore](), has.imports != nil, imports()},
		{"directory", reflect.TypeFor[store.DirectoryStore](), has.people != nil, directory()},
		{"rows", reflect.TypeFor[store.DirectoryStore](), has.people != nil, userRows()},
		{"settings", reflect.TypeFor[store.SettingsStore](), has.settings != nil, merge(settings(), settingsRecords())},
		{"diagnosis", reflect.TypeFor[store.DiagnosticStore](), has.health != nil, diagnosis()},
		{"clearing", reflect.TypeFor[store.LimitStore](), has.clears != nil, clearing()},
		{"invitations", reflect.TypeFor[store.InvitationStore](), has.invited != nil, invitations()},
		{"anonymizing", reflect.TypeFor[store.AnonymizeStore](), has.nobody != nil, anonymizing()},
		{"first owner", reflect.TypeFor[store.FirstOwnerStore](), has.founded != nil, firstOwner()},
		{"jobs", reflect.TypeFor[store.JobStore](), has.work != nil, merge(jobs(), jobRecords())},
		{"message log", reflect.TypeFor[store.MessageLogStore](), has.posted != nil && has.outbox != nil, messageLog()},
		{"stats", reflect.TypeFor[store.StatsStore](), has.stats != nil, stats()},
		{"session lists", reflect.TypeFor[store.SessionListStore](), has.logins != nil, merge(sessionLists(), everySessionByOrder())},
		{"impersonations", reflect.TypeFor[store.ImpersonationStore](), has.acting != nil, merge(impersonations(), impersonationRecords())},
		{"rotation", reflect.TypeFor[store.RotationStore](), has.uses != nil, rotation()},
	} {
		if !c.has {
			t.Logf("%s: none, its checks do not run", c.name)
			continue
		}
		t.Logf("%s: %s", c.name, found(has.under, c.face))
		run(t, c.name, c.checks)
	}
}

// found names the type that has a capability, and those that wrap it.
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
