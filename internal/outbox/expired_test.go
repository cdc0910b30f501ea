package outbox

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
)

// shelf is a store that records outcomes and has no messages to claim.
type shelf struct {
	store.Journal
	finished []store.FinishMessage
}

func (s *shelf) FinishMessage(_ context.Context, f store.FinishMessage) error {
	s.finished = append(s.finished, f)
	return nil
}

// An expired message is reported and dropped, not sent, with or without a store.
func TestExpiredMessageIsDropped(t *testing.T) {
	for _, kept := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m, st := &scripted{}, &shelf{}
			b, _ := testOutbox(t, Options{}, m)
			var told Message
			b.o.Failed = func(_ context.Context, m Message, _ error) { told = m }
			if kept {
				b.store = st
			}
			body, err := json.Marshal(magic)
			if err != nil {
				t.Fatal(err)
			}
			if b.attempt(t.Context(), b.queued(&store.SealedMessage{ID: "1", Body: body, ExpiresAt: b.o.Now(), Attempts: 1})) {
				t.Error("it is tried again")
			}
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if len(m.sent) != 0 || told.ID != "1" || told.Kind != magic.Kind || told.Channel != store.ChannelEmail || told.To != magic.To {
				t.Errorf("kept %t: sent %v, told of %+v", kept, m.sent, told)
			}
			if !kept {
				return
			}
			if len(st.finished) != 1 || st.finished[0].ID != "1" || st.finished[0].State != store.MessageDropped || st.finished[0].Error == "" {
				t.Errorf("finished %+v", st.finished)
			}
		})
	}
}

// A stored message that is not claimed is sent once, by the first process that claims it.
func TestUnclaimedMessageIsLeftToTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scripted{}
		b, _ := testOutbox(t, Options{}, m)
		b.store = &shelf{}
		body, err := json.Marshal(magic)
		if err != nil {
			t.Fatal(err)
		}
		now := b.o.Now()
		for _, attempts := range []int{0, 1} {
			b.Enqueue(t.Context(), []store.SealedMessage{{ID: "1", Body: body, NextAt: now.Add(b.Lease()), ExpiresAt: now.Add(time.Hour), Attempts: attempts}})
			synctest.Wait()
			if len(m.sent) != attempts {
				t.Errorf("claimed %d times, sent %d times", attempts, len(m.sent))
			}
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
