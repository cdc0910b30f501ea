package service_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// Until it is closed, a service works in the background: it deletes expired data, follows
// the settings and sends the messages that others left unsent. A command without background
// work leaves all of it to others.
func TestWhatGoesOnBehindTheRequests(t *testing.T) {
	for name, c := range map[string]struct {
		opts []auth.Option
		want []string
	}{
		"a service": {nil, []string{"ClaimMessages", "Settings", "Sweep", "SweepEvents"}},
		"a command": {[]auth.Option{auth.WithoutBackground()}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			tap := storetap.New(memstore.New())
			opts := append([]auth.Option{auth.WithSecret(make32()), auth.WithBaseURL("https://auth.test"), auth.WithMailer(&harness.PostOffice{}), auth.WithLogger(slog.New(slog.DiscardHandler))}, c.opts...)
			a, err := auth.New(t.Context(), tap, opts...)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			seen := map[string]int{}
			tap.Reset(storetap.Hooks{Background: true, Before: func(_ context.Context, method string, _ int) {
				mu.Lock()
				defer mu.Unlock()
				seen[method]++
			}})
			did := func() (list []string) {
				<-time.After(2*time.Minute + time.Second) // the bubble's clock
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				for method, n := range seen {
					if n < 2 {
						t.Errorf("%s: %s only once", name, method)
					}
					list = append(list, method)
				}
				clear(seen)
				slices.Sort(list)
				return list
			}
			if got := did(); !slices.Equal(got, c.want) {
				t.Errorf("%s does %v, want %v", name, got, c.want)
			}
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := did(); got != nil {
				t.Errorf("%s does %v after its end", name, got)
			}
		})
	}
}

func make32() []byte { return []byte("a secret of the tests', 32 bytes") }

// Background work of a package built on Auth is notified of the end, which waits for it. No
// work starts after that, nor in a command.
func TestRoomsWorkUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewWorld(t)
		var ran, ended bool
		host.Of(w).Background(func(ctx context.Context) {
			ran = ctx.Err() == nil
			<-ctx.Done()
			<-time.After(time.Hour) // the bubble's clock
			ended = true
		})
		synctest.Wait()
		if !ran {
			t.Error("nothing runs")
		}
		if err := w.Close(t.Context()); err != nil || !ended {
			t.Errorf("closed before the work was over: %v", err)
		}
		for name, kit := range map[string]host.Kit{"closed": host.Of(w), "command": host.Of(harness.NewWorld(t, auth.WithoutBackground()))} {
			began := false
			kit.Background(func(context.Context) { began = true })
			synctest.Wait()
			if began {
				t.Errorf("%s: it runs", name)
			}
		}
	})
}
