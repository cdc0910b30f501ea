package storetest

import (
	"context"
	"fmt"

	"github.com/authmount/auth/store"
)

func (b *bench) putSettings(revision int64, document string) (store.StoredSettings, error) {
	return b.project.PutSettings(b.ctx(), store.PutSettings{Change: by(now), Revision: revision, Document: []byte(document)})
}

// hasSettings checks the document of settings.
func (b *bench) hasSettings(want store.StoredSettings) {
	b.Helper()
	got, err := b.project.Settings(b.ctx())
	b.ok(err)
	equal(b, "StoredSettings", got, want)
}

// settings checks that a document of settings is stored, with a revision.
func settings() checks {
	const document = `{"b": [1,  2],"a":"ä","b":null}` // a form that a store must not normalise
	return checks{
		"settings begin empty": func(b *bench) { b.hasSettings(store.StoredSettings{}) },
		"settings come back byte by byte": func(b *bench) {
			got, err := b.putSettings(0, document)
			b.ok(err)
			want := store.StoredSettings{Revision: 1, Document: []byte(document), UpdatedAt: now}
			equal(b, "StoredSettings", got, want)
			b.hasSettings(want)
			got, err = b.project.PutSettings(b.ctx(), store.PutSettings{Change: by(now.Add(us)), Revision: 1, Document: []byte("{}")})
			b.ok(err)
			want = store.StoredSettings{Revision: 2, Document: []byte("{}"), UpdatedAt: now.Add(us)}
			equal(b, "StoredSettings", got, want)
			b.hasSettings(want)
		},
		"settings at another revision stay": func(b *bench) {
			want, err := b.putSettings(0, document)
			b.ok(err)
			for _, revision := range []int64{0, 2, -1} {
				_, err := b.putSettings(revision, "{}")
				b.is(err, store.ErrStale)
			}
			b.hasSettings(want)
		},
		"no document records only": func(b *bench) {
			want, err := b.putSettings(0, document)
			b.ok(err)
			for _, revision := range []int64{1, 7} {
				got, err := b.project.PutSettings(b.ctx(), store.PutSettings{Change: by(now.Add(minute)), Revision: revision})
				b.ok(err)
				equal(b, "StoredSettings", got, want)
			}
			b.hasSettings(want)
		},
		"settings are copies": func(b *bench) {
			mine := []byte(document)
			got, err := b.project.PutSettings(b.ctx(), store.PutSettings{Change: by(now), Document: mine})
			b.ok(err)
			mine[0], got.Document[0] = 'x', 'x'
			for range 2 {
				got, err := b.project.Settings(b.ctx())
				b.ok(err)
				need(b, "StoredSettings.Document, after callers wrote into theirs,", string(got.Document), document)
				got.Document[0] = 'x'
			}
		},
		"of parallel changes of the settings one wins": func(b *bench) {
			won, lost := b.race(func(i int) error {
				_, err := b.putSettings(0, fmt.Sprintf(`{"n":%d}`, i))
				return err
			}, store.ErrStale)
			b.oneWon(won, lost, store.ErrStale)
		},
		"a caller who has gone reads no settings": func(b *bench) {
			_, err := b.project.Settings(cancelled())
			b.gone(err)
		},
	}
}

func putSettings(w *world) attempt {
	u := w.person()
	d, err := w.project.Settings(w.ctx())
	w.ok(err)
	return attempt{user: u, call: func(ctx context.Context, c store.Change) error {
		_, err := w.project.PutSettings(ctx, store.PutSettings{Change: c, Revision: d.Revision, Document: []byte(`{"a":1}`)})
		return err
	}}
}
