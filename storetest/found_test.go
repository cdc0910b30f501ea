package storetest

import (
	"reflect"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

type hiding struct{ auth.Store }

type showing struct{ auth.Store }

func (s *showing) Unwrap() auth.Store { return s.Store }

func TestFound(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	for want, store := range map[string]auth.Store{
		"*memstore.Store": s,
		"*memstore.Store, through *storetest.showing":                     &showing{s},
		"*memstore.Store, through *storetest.showing, *storetest.showing": &showing{&showing{s}},
		"none": &showing{hiding{s}},
	} {
		if got := found(store, reflect.TypeFor[auth.FactorStore]()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
