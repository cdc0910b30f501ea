package storetest

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Owned is owned, for the mutants.
func Owned() []string { return owned() }

// A member that cannot be filled is named, rather than left empty.
func TestUnknownKindsAreNamed(t *testing.T) {
	t.Parallel()
	type word string
	for _, v := range []any{
		&struct{ X word }{}, &struct{ X chan int }{}, &struct{ X any }{}, &struct{ X *string }{}, &struct{ X map[string]string }{},
		&struct{ X []word }{}, &struct{ X time.Duration }{}, &struct{ X struct{ x int } }{},
	} {
		err := (&filler{}).fill("User", reflect.ValueOf(v).Elem())
		if err == nil || !strings.Contains(err.Error(), "User.X") {
			t.Errorf("%T: %v", v, err)
		}
	}
}
