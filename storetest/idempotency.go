package storetest

import (
	"errors"
	"strings"

	"github.com/authmount/auth/store"
)

// once returns an idempotency key.
func once() *store.Idempotency {
	return &store.Idempotency{
		Actor: "actor", Route: "POST /users", Key: "key", RequestHash: hashOf("request"), Result: []byte("result"), ExpiresAt: now.Add(minute),
	}
}

// idempotency checks, at every method, that a change happens once under a key.
func idempotency(has *bench) checks {
	return merge(atEveryMethod(has, happensOnce), checks{
		"of parallel changes under one key one wins": func(b *bench) {
			for round := range 5 {
				key := once()
				key.Key = strings.Repeat("k", round+1)
				won, lost := b.race(func(int) error {
					c := store.CreateUser{Change: by(now), NewUser: b.newUser("")}
					c.Idempotency = key
					_, err := b.CreateUser(b.ctx(), c)
					return err
				}, store.ErrRepeated)
				b.oneWon(won, lost, store.ErrRepeated)
			}
		},
		"a wrong code keeps no key": func(b *bench) {
			b.token(newCode("123456", "+491", 3))
			c := store.CodeAttempt{Change: proof(now), Purpose: store.PurposeMagicLink, Subject: "+491", Hash: hashOf("000000")}
			c.Idempotency = once()
			_, _, err := b.RedeemCode(b.ctx(), c)
			b.is(err, store.ErrWrongCode)
			c.Hash = hashOf("123456")
			_, _, err = b.RedeemCode(b.ctx(), c)
			b.ok(err)
			_, _, err = b.RedeemCode(b.ctx(), c)
			b.is(err, store.ErrRepeated)
		},
		"keys are copies": func(b *bench) {
			key := once()
			c := store.CreateUser{Change: by(now), NewUser: b.newUser("")}
			c.Idempotency = key
			_, err := b.CreateUser(b.ctx(), c)
			b.ok(err)
			key.Result[0], key.RequestHash[0] = 'x', key.RequestHash[0]^1
			for range 2 {
				c.Idempotency = once()
				_, err = b.CreateUser(b.ctx(), c)
				var again *store.RepeatedError
				if !errors.As(err, &again) || !again.Same || string(again.Result) != "result" {
					b.wrong("error", err, "a RepeatedError of the same request with its result")
					b.FailNow()
				}
				again.Result[0] = 'x'
			}
		},
	})
}

// happensOnce makes a call under a key, and calls under the same and other keys.
func happensOnce(b *bench, prepare func(*world) attempt) {
	w := newWorld(b)
	first := prepare(w)
	c := by(now)
	c.Idempotency, c.IfUsers = once(), []store.UserAt{{ID: w.id()}}
	w.is(first.call(w.ctx(), c), store.ErrStale)
	c.IfUsers = nil
	w.ok(first.call(w.ctx(), c)) // the refused call did not count

	next := prepare(w)
	before := w.state()
	for name, same := range map[string]bool{"the same": true, "another": false} {
		c := by(now.Add(minute - us))
		c.Idempotency = once()
		c.Idempotency.Result = []byte("a later one")
		if !same {
			c.Idempotency.RequestHash = hashOf("another request")
		}
		c.IfUsers, c.KeepOwner = []store.UserAt{{ID: w.id()}}, true // the key is checked before
		w.witness(&c)
		err := next.call(w.ctx(), c)
		var again *store.RepeatedError
		if !errors.As(err, &again) || !errors.Is(err, store.ErrRepeated) {
			w.of("%s request", name).wrong("error", err, "a RepeatedError")
			w.FailNow()
		}
		equal(w.of("%s request", name), "RepeatedError.Same", again.Same, same)
		equal(w.of("%s request", name), "RepeatedError.Result", string(again.Result), "result")
		w.of("%s request", name).unchanged("repeated", before, w.state())
	}
	c = by(now.Add(minute - us))
	c.By, c.Idempotency = store.Authority{Session: &store.SessionRef{ID: w.id(), UserID: w.id()}}, once()
	w.is(next.call(w.ctx(), c), store.ErrSessionEnded) // the result is kept from other callers

	for name, edit := range map[string]func(*store.Idempotency){
		"actor": func(i *store.Idempotency) { i.Actor = "another" },
		"route": func(i *store.Idempotency) { i.Route = "another" },
		"key":   func(i *store.Idempotency) { i.Key = "another" },
	} {
		c := by(now)
		c.Idempotency = once()
		edit(c.Idempotency)
		err := prepare(w).call(w.ctx(), c)
		w.of("another %s", name).fails(err, nil)
	}
	late := prepare(w)
	c = by(now)
	c.Idempotency = once()
	c.Idempotency.Key, c.Idempotency.ExpiresAt = "short", now.Add(us)
	w.ok(late.call(w.ctx(), c))
	late = prepare(w)
	c.Now = now.Add(us) // the record has expired
	c.Idempotency = once()
	c.Idempotency.Key = "short"
	w.ok(late.call(w.ctx(), c))
	late = prepare(w)
	w.is(late.call(w.ctx(), c), store.ErrRepeated) // there is a new record
}
