package storetest

import (
	"reflect"
	"testing"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

type hiding struct{ store.Store }

type showing struct{ store.Store }

func (s *showing) Unwrap() store.Store { return s.Store }

func TestFound(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	for want, st := range map[string]store.Store{
		"*memstore.Store": s,
		"*memstore.Store, through *storetest.showing":                     &showing{s},
		"*memstore.Store, through *storetest.showing, *storetest.showing": &showing{&showing{s}},
		"none": &showing{hiding{s}},
	} {
		if got := found(st, reflect.TypeFor[store.FactorStore]()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
