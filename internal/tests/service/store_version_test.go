package service_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// restsOnAtVersion lists the members of every change, and of the conditions in it, that the
// contract has at store.ContractVersion.
const restsOnAtVersion = `version 16
Change: Now By IfUsers IfRoles IfKey KeepOwner FirstOwner Events Messages Unrecorded Idempotency
Authority: Session Token Key Proof System External
SessionRef: ID UserID
TokenRef: Purpose Hash
KeyRef: ID Revision
UserAt: ID Revision CredentialRevision PasswordHash Email EmailVerified Phone PhoneVerified Banned
Idempotency: Actor Route Key RequestHash Result ExpiresAt
`

// A new condition of changes raises the version of the contract: a store that was written
// before would compile and silently ignore the condition.
func TestConditionsRaiseTheContractVersion(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintln("version", store.ContractVersion)
	for _, of := range []reflect.Type{
		reflect.TypeFor[store.Change](), reflect.TypeFor[auth.Authority](), reflect.TypeFor[auth.SessionRef](), reflect.TypeFor[store.TokenRef](),
		reflect.TypeFor[auth.KeyRef](), reflect.TypeFor[auth.UserAt](), reflect.TypeFor[store.Idempotency](),
	} {
		var names []string
		for i := range of.NumField() {
			names = append(names, of.Field(i).Name)
		}
		text += of.Name() + ": " + strings.Join(names, " ") + "\n"
	}
	if text != restsOnAtVersion {
		t.Errorf("a change rests on\n%swritten down is\n%sA new condition raises auth.ContractVersion, and what is written down with it", text, restsOnAtVersion)
	}
}
