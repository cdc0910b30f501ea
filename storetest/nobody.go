package storetest

import (
	"errors"
	"reflect"
	"time"

	"github.com/authmount/auth/store"
)

// strange are ids that no row has and no store creates. Methods must answer as for a
// missing row, without another failure.
var strange = []string{"x", "00000000-0000-0000-0000-00000000000g", "\x00", "\xff"}

// nobody checks that methods treat such ids as missing rows: every method with an id as its
// first parameter, and those that name a row in another way.
func nobody(has *bench) checks {
	all := checks{}
	for _, face := range faces() {
		if found(has.under, face) == "none" {
			continue
		}
		for i := range face.NumMethod() {
			m := face.Method(i)
			if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[string]() {
				continue
			}
			all[m.Name] = func(b *bench) {
				for _, id := range strange {
					in := []reflect.Value{reflect.ValueOf(b.ctx()), reflect.ValueOf(id)}
					for p := 2; p < m.Type.NumIn(); p++ {
						v := reflect.New(m.Type.In(p)).Elem()
						b.something(v)
						in = append(in, v)
					}
					out := implementation(b.Store, face).MethodByName(m.Name).Call(in)
					err, _ := out[len(out)-1].Interface().(error)
					b.isNobody(id, err)
					for _, r := range out[:len(out)-1] {
						if !isNothing(r) {
							b.of("%q", id).wrong("an answer", r.Interface(), "none")
						}
					}
				}
			}
		}
	}
	all["ids in parameters"] = func(b *bench) {
		for _, id := range strange {
			b.namesNobody(id)
		}
	}
	return all
}

// isNobody checks the error for a missing row.
func (b *bench) isNobody(id string, err error) {
	b.Helper()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.of("%q", id).is(err, store.ErrNotFound)
	}
}

// isNothing reports whether a result is empty, also as an empty list.
func isNothing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return v.IsZero()
		}
		for i := range v.NumField() {
			if !isNothing(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// namesNobody uses a strange id in the parameters of changes and lists.
func (b *bench) namesNobody(id string) {
	b.Helper()
	b = b.of("%q", id)
	u := b.user("")
	s := b.session(u.ID)
	t := newCode(b.id(), "", 0)
	t.UserID = id
	b.is(b.put(t), store.ErrNotFound)
	nobodys := newCode(b.id(), "", 0)
	b.token(nobodys)
	_, _, err := b.RedeemToken(b.ctx(), store.Redemption{Change: by(now), Purpose: nobodys.Purpose, Hash: nobodys.Hash, Effect: store.Effect{UserID: id}})
	b.is(err, store.ErrNotFound)
	for filter, want := range map[store.SessionFilter]int{{ID: id}: 0, {Except: id}: 1} {
		ended, err := b.revoke(u.ID, filter)
		b.ok(err)
		if len(ended) != want {
			b.wrong("sessions that ended", ended, "as many as nobody's id picks")
		}
	}
	_, _, err = b.AdvanceSession(b.ctx(), store.Advance{Change: by(now), SessionID: id, IdleUntil: now.Add(minute)})
	b.is(err, store.ErrNotFound)
	_, err = b.update(id, store.UserPatch{FullName: ptr("x")})
	b.is(err, store.ErrNotFound)
	_, _, err = b.Session(b.ctx(), s.ID, now)
	b.is(err, store.ErrSessionEnded)
	if b.journal != nil {
		b.say(u.ID, b.event(now))
		for _, q := range []store.EventQuery{{ActorID: id}, {Target: id}, {RequestID: id}, {Target: id, ActorID: u.ID}} {
			b.lists(q)
		}
	}
	if b.journal != nil {
		b.ok(b.journal.FinishMessage(b.ctx(), store.FinishMessage{ID: id, State: store.MessageSent, At: now}))
	}
	if b.admin != nil {
		b.is(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: id}), store.ErrNotFound)
		_, err := b.admin.StartJob(b.ctx(), store.StartJob{Change: by(now), ID: id, ExpiresAt: now.Add(minute)})
		b.is(err, store.ErrNotFound)
		_, err = b.admin.FinishJobChunk(b.ctx(), store.FinishJobChunk{JobID: id, Now: now, Until: now})
		b.is(err, store.ErrNotFound)
	}
}
