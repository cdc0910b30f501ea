package storetest_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

func deviceMutants() map[string]mutant {
	all := map[string]mutant{
		"no device is known": caught("devices/a device is known to the account that signed in on it", func(b base) store.Store {
			return &knower{base: b, says: func(*knower, store.UserKey, store.Credentials) bool { return false }}
		}),
		"any device is known": caught("devices/a device is known to the account that signed in on it", func(b base) store.Store {
			return &knower{base: b, says: func(*knower, store.UserKey, store.Credentials) bool { return true }}
		}),
		"devices are known to everybody": caught("devices/a device is known to the account that signed in on it", func(b base) store.Store {
			return &knower{base: b, says: func(s *knower, key store.UserKey, _ store.Credentials) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(s.seen)), func(d [2]string) bool { return d[1] == key.Device })
			}}
		}),
		"devices are never forgotten": {func(s store.Store) store.Store {
			return &knower{base: base{s}, says: func(s *knower, key store.UserKey, c store.Credentials) bool {
				return s.seen[[2]string{c.User.ID, key.Device}]
			}}
		}, []string{
			"devices/devices go with all ways in", "devices/devices are forgotten by themselves, too", "devices/devices go with the user",
			"devices/of many devices those seen last are known", "devices/a device not seen for long is swept",
		}},
		"ended sessions leave their devices": caught("devices/devices go with an end of sessions that says so", func(b base) store.Store {
			return dropsDevices{b, func(c *store.RevokeSessions) { c.DropDevices = false }}
		}),
		"ended sessions take the device with them that ends them": caught("devices/devices go with an end of sessions that says so", func(b base) store.Store {
			return dropsDevices{b, func(c *store.RevokeSessions) { c.Filter.Except = "" }}
		}),
		"ended sessions always take their devices": caught("devices/devices go with an end of sessions that says so", func(b base) store.Store {
			return dropsDevices{b, func(c *store.RevokeSessions) { c.DropDevices = true }}
		}),
		"an ended session takes all devices with it": caught("devices/one device goes with its session", func(b base) store.Store {
			return forgetsAll{dropsDevices{b, func(*store.RevokeSessions) {}}}
		}),
		"sequences spare devices": caught("devices/no device is spared for its session's sequence, address or age", func(b base) store.Store {
			return dropsDevices{b, func(c *store.RevokeSessions) { c.DropDevices = c.DropDevices && c.Filter.FromSequence == 0 }}
		}),
		"devices end with sessions": caught("devices/a device outlives its sessions", func(b base) store.Store { return &endsDevices{knower{base: b}} }),
		"a new user's device is lost": {func(s store.Store) store.Store { return losesDevice{base{s}} }, []string{
			"devices/a device is known to the account that was made on it", "fields/every member of a session is kept",
		}},
		"an enrolment's device is lost": caught("factors/an enrolment's session makes its device known", func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return enrolsNowhere{factorBase{b, f}}
		}),
		"a refused sign-in makes device known": caught("devices/a refused sign-in makes no device known", func(b base) store.Store { return forward{b} }),
		"a device is not seen again": {func(s store.Store) store.Store { return &knower{base: base{s}, once: true} }, []string{
			"devices/of many devices those seen last are known", "devices/a device not seen for long is swept",
		}},
		"devices are swept too early":     caught("devices/a device not seen for long is swept", func(b base) store.Store { return sweepsEarly{b} }),
		"the cap of sessions is ignored":  keeping(func(*store.CreateSession) int { return 0 }),
		"one session too many is kept":    keeping(func(c *store.CreateSession) int { return c.KeepSessions + 1 }),
		"one session too few is kept":     keeping(func(c *store.CreateSession) int { return max(1, c.KeepSessions-1) }),
		"whom a sign-in ends is not told": caught("keeping/the least active sessions end when there are too many", func(b base) store.Store { return silent{b} }),
		"the session just made may end":   caught("keeping/the least active sessions end when there are too many", func(b base) store.Store { return endsAfter{b} }),
		"sign-ins count, then end": {func(s store.Store) store.Store { return endsBefore{base{s}} }, []string{
			"keeping/parallel sign-ins never leave more sessions than are kept", "keeping/a refused sign-in ends no session",
		}},
	}
	for i := range reflect.TypeFor[store.Session]().NumField() {
		if name := reflect.TypeFor[store.Session]().Field(i).Name; name != "Origin" { // the store sets it
			all["a new session loses "+name] = caught("fields/every member of a session is kept", func(b base) store.Store { return dropsOfSession{b, name} })
		}
	}
	return all
}

// knower keeps a list of devices of its own, and reports which of them are known.
type knower struct {
	base
	says func(*knower, store.UserKey, store.Credentials) bool // nil: the store's answer
	once bool                                                 // each device is reported once only

	mu   sync.Mutex
	seen map[[2]string]bool // user and device
}

func (s *knower) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	s.mu.Lock()
	d := [2]string{c.Session.UserID, c.Session.Device}
	if s.once && s.seen[d] {
		c.Session.Device = ""
	}
	if s.seen == nil {
		s.seen = map[[2]string]bool{}
	}
	s.seen[d] = true
	s.mu.Unlock()
	return s.Store.CreateSession(ctx, c)
}

func (s *knower) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	c, err := s.Store.Credentials(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.says != nil {
		c.KnownDevice = s.says(s, key, c)
	}
	return c, err
}

// endsDevices forgets devices together with the sessions.
type endsDevices struct{ knower }

func (s *endsDevices) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.Patch.Revoke != nil {
		s.mu.Lock()
		s.says = func(*knower, store.UserKey, store.Credentials) bool { return false }
		s.mu.Unlock()
	}
	return s.Store.UpdateUser(ctx, c)
}

type losesDevice struct{ base }

func (s losesDevice) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	if c.Session != nil {
		first := *c.Session
		first.Device, c.Session = "", &first
	}
	return s.Store.CreateUser(ctx, c)
}

type enrolsNowhere struct{ factorBase }

func (s enrolsNowhere) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	if c.Create != nil {
		created := *c.Create
		created.Session.Device, c.Create = "", &created
	}
	return s.FactorStore.EnableFactor(ctx, c)
}

// forward creates the session without its conditions if they fail, and then revokes it.
type forward struct{ base }

func (s forward) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if err != nil {
		again := store.CreateSession{Change: change(c.Now), NewSession: store.NewSession{Session: c.Session}}
		_, _ = s.Store.CreateSession(context.WithoutCancel(ctx), again)
		_, _ = s.RevokeSessions(context.WithoutCancel(ctx), store.RevokeSessions{Change: change(c.Now), UserID: c.Session.UserID})
	}
	return u, err
}

type sweepsEarly struct{ base }

func (s sweepsEarly) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.Store.Sweep(ctx, now.Add(time.Microsecond), limit)
}

// keeping keeps the wrong number of sessions.
func keeping(n func(*store.CreateSession) int) mutant {
	return caught("keeping/the least active sessions end when there are too many", func(b base) store.Store { return keeper{b, n} })
}

type keeper struct {
	base
	n func(*store.CreateSession) int
}

func (s keeper) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if c.KeepSessions > 0 {
		c.KeepSessions = s.n(&c)
	}
	return s.Store.CreateSession(ctx, c)
}

type silent struct{ base }

func (s silent) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	c.Ended = nil
	return s.Store.CreateSession(ctx, c)
}

// end revokes all of a user's live sessions except the n most recently active ones.
func (s base) end(ctx context.Context, userID string, n int, now time.Time) (ended []string) {
	list, _ := s.Sessions(ctx, userID, now)
	slices.SortFunc(list, func(a, b store.Session) int { return b.LastActiveAt.Compare(a.LastActiveAt) })
	for _, sess := range list[min(n, len(list)):] {
		_, _ = s.RevokeSessions(ctx, store.RevokeSessions{Change: change(now), UserID: userID, Filter: store.SessionFilter{ID: sess.ID}})
		ended = append(ended, sess.ID)
	}
	slices.Sort(ended)
	return ended
}

type endsAfter struct{ base }

func (s endsAfter) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	n := c.KeepSessions
	c.KeepSessions = 0
	u, err := s.Store.CreateSession(ctx, c)
	if n > 0 {
		if ended := s.end(ctx, c.Session.UserID, n, c.Now); ended != nil {
			c.Ended(ended)
		}
	}
	return u, err
}

type endsBefore struct{ base }

func (s endsBefore) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if c.KeepSessions > 0 {
		ended := s.end(ctx, c.Session.UserID, c.KeepSessions-1, c.Now)
		pause()
		c.KeepSessions = 0
		if ended != nil {
			c.Ended(ended)
		}
	}
	return s.Store.CreateSession(ctx, c)
}

type dropsOfSession struct {
	base
	name string
}

func (s dropsOfSession) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	reflect.ValueOf(&c.Session).Elem().FieldByName(s.name).SetZero()
	return s.Store.CreateSession(ctx, c)
}

// dropsDevices forgets the wrong devices.
type dropsDevices struct {
	base
	edit func(*store.RevokeSessions)
}

func (s dropsDevices) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	s.edit(&c)
	return s.Store.RevokeSessions(ctx, c)
}

// forgetsAll forgets all devices with one session.
type forgetsAll struct{ dropsDevices }

func (s forgetsAll) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	ended, err := s.Store.RevokeSessions(ctx, c)
	if err == nil && c.DropDevices {
		_, err = s.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.UserID, Patch: store.UserPatch{DropDevices: true}})
	}
	return ended, err
}
