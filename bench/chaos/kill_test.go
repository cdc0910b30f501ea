//go:build faults

package chaos

import (
	"syscall"
	"testing"
	"time"
)

func TestServerKilledUnderLoad(t *testing.T) {
	pg := postgres(t)
	servers := []*server{serve(t, pg.URL, "-no-rate-limit"), serve(t, pg.URL, "-no-rate-limit"), serve(t, pg.URL, "-no-rate-limit")}
	l := begin(t, 90, servers...)
	l.mu.Lock()
	l.cuts = true
	l.mu.Unlock()
	for _, s := range servers {
		l.flows(40, 30*time.Second)
		// Not between two requests.
		eventually(t, 30*time.Second, "requests in flight", func() bool { return s.inflight.Load() >= 2 })
		s.p.kill(syscall.SIGKILL)
		if got := s.p.cmd.ProcessState.String(); got != "signal: killed" {
			t.Errorf("server ended of itself: %s", got)
		}
		l.flows(30, 30*time.Second) // the other servers continue
		s.start(t)
		l.flows(20, 30*time.Second)
	}
	l.end()
	l.report()
	if l.cut == 0 || l.refused == 0 {
		t.Errorf("%d requests lost their connection and %d found nobody: the kills came at the wrong moment", l.cut, l.refused)
	}
	if l.unavailable > 0 {
		t.Errorf("%d answers of 503, and the database was there", l.unavailable)
	}
	for _, s := range servers {
		s.alive(t)
	}
	l.verify(servers[1], pg.URL)
}
