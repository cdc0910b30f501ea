package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/authmount/auth/store"
)

// settingsMutants are stores with faulty settings.
func settingsMutants() map[string]mutant {
	broken := func(m settingsMutant) func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			m := m // of this store
			m.base = base{s}
			m.ProjectStore, _ = store.Capability[store.ProjectStore](s)
			return m
		}
	}
	return map[string]mutant{
		"settings are put at any revision": {broken(settingsMutant{blind: true}), []string{"settings/settings at another revision stay", "settings/of parallel changes of the settings one wins"}},
		"settings are tidied":              {broken(settingsMutant{tidy: true}), []string{"settings/settings come back byte by byte"}},
		"a record empties the settings":    {broken(settingsMutant{empties: true}), []string{"settings/no document records only"}},
		"messages are not counted":         {func(s store.Store) store.Store { return uncounted{base{s}, capability[store.AdminStore](base{s})} }, []string{"diagnosis/messages that wait are counted"}},
		"settings are recorded by nobody":  {broken(settingsMutant{silent: true}), []string{"permissions/PutSettings/session"}},
	}
}

type settingsMutant struct {
	base
	store.ProjectStore
	blind, tidy, empties, silent bool
}

func (s settingsMutant) PutSettings(ctx context.Context, c store.PutSettings) (store.StoredSettings, error) {
	now, err := s.Settings(ctx)
	if err != nil {
		return now, err
	}
	if s.blind {
		c.Revision = now.Revision
	}
	var tidied bytes.Buffer
	if s.tidy && json.Compact(&tidied, c.Document) == nil {
		c.Document = tidied.Bytes()
	}
	if s.empties && c.Document == nil {
		c.Document, c.Revision = []byte{}, now.Revision
	}
	if s.silent {
		c.Events, c.Messages = nil, nil
	}
	return s.ProjectStore.PutSettings(ctx, c)
}

// uncounted counts no messages.
type uncounted struct {
	base
	store.AdminStore
}

func (uncounted) Diagnose(context.Context) (store.StoreDiagnosis, error) {
	return store.StoreDiagnosis{}, nil
}
