package storetest_test

import (
	"context"
	"slices"
	"sync"

	"github.com/authmount/auth/store"
)

func newDeviceMutants() map[string]mutant {
	const once, parallel = "devices/a device is new once", "devices/of parallel sign-ins on a new device one tells"
	creating := func(check string, edit func(*store.CreateSession)) mutant {
		return caught(check, func(b base) store.Store { return editsSession{b, edit} })
	}
	enrolling := func(check string, edit func(*store.NewSession)) mutant {
		return caught(check, func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return editsEnrolment{factorBase{b, f}, edit}
		})
	}
	return map[string]mutant{
		"no device is refused":           creating(once, func(c *store.CreateSession) { c.OnNewDevice.Refuse = false }),
		"every new device is refused":    creating(once, func(c *store.CreateSession) { c.OnNewDevice.Refuse = true }),
		"a new device's token is lost":   creating(once, func(c *store.CreateSession) { c.OnNewDevice.Tokens = nil }),
		"a new device's message is lost": creating(once, func(c *store.CreateSession) { c.OnNewDevice.Messages = nil }),
		"a new device is not told":       creating(once, func(c *store.CreateSession) { c.OnNewDevice.Made = nil }),
		"a new device's event is lost": creating(once, func(c *store.CreateSession) {
			c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(o store.OutcomeEvent) bool { return o.On == store.OutcomeNewDevice })
		}),
		"every sign-in tells of a device": creating(once, func(c *store.CreateSession) {
			c.Messages = append(slices.Clone(c.Messages), c.OnNewDevice.Messages...)
		}),
		"no device is never new": creating("devices/no device is new to whoever has any", func(c *store.CreateSession) {
			if c.Session.Device == "" {
				c.OnNewDevice = store.NewDevice{}
			}
		}),
		"no device is new only while others are known": caught("devices/no device is new to whoever had any that were forgotten", func(b base) store.Store { return &unmindful{base: b} }),
		"an enrolment on a new device is not refused":  enrolling("factors/an enrolment's session on a new device is refused", func(c *store.NewSession) { c.OnNewDevice.Refuse = false }),
		"an enrolment's new device is not told":        enrolling("factors/an enrolment's session tells of a new device", func(c *store.NewSession) { c.OnNewDevice = store.NewDevice{} }),
		"parallel sign-ins all tell":                   caught(parallel, func(b base) store.Store { return tellsAll{b} }),
	}
}

type editsSession struct {
	base
	edit func(*store.CreateSession)
}

func (s editsSession) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	s.edit(&c)
	return s.Store.CreateSession(ctx, c)
}

type editsEnrolment struct {
	factorBase
	edit func(*store.NewSession)
}

func (s editsEnrolment) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	if c.Create != nil {
		created := *c.Create
		s.edit(&created)
		c.Create = &created
	}
	return s.FactorStore.EnableFactor(ctx, c)
}

// tellsAll reads whether the device is known, and then signs in.
type tellsAll struct{ base }

func (s tellsAll) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	key := store.ByID(c.Session.UserID)
	key.Device = c.Session.Device
	before, _ := s.Credentials(ctx, key)
	pause()
	told := c.OnNewDevice.Made
	c.OnNewDevice.Made = nil
	u, err := s.Store.CreateSession(ctx, c)
	if err == nil && told != nil && !before.KnownDevice {
		told()
	}
	return u, err
}

// unmindful forgets, together with the devices, that there were any.
type unmindful struct {
	base
	forgot sync.Map // by user
}

func (s *unmindful) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.Patch.DropDevices {
		s.forgot.Store(c.UserID, true)
	}
	return s.Store.UpdateUser(ctx, c)
}

func (s *unmindful) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if _, forgot := s.forgot.Load(c.Session.UserID); forgot && c.Session.Device == "" {
		c.OnNewDevice = store.NewDevice{}
	}
	return s.Store.CreateSession(ctx, c)
}
