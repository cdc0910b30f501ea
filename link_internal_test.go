package auth

import (
	"bytes"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/store"
)

// testKeys are signing keys for tests.
func testKeys(t *testing.T) *keys.Ring {
	t.Helper()
	ring, err := (&config{secrets: [][]byte{[]byte("a secret of the tests', 32 bytes")}}).newKeys()
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// The stored code of a decoy link matches no attempt.
func TestCodesOfDecoysAreNobodysGuess(t *testing.T) {
	a := &Auth{keys: testKeys(t)}
	first, second := store.Token{Purpose: store.PurposeMagicLink, Subject: "s"}, store.Token{Purpose: store.PurposeMagicLink, Subject: "s"}
	code := a.addCode(&first, "secret", "", "bound")
	if a.addCode(&second, "secret", "", "bound") != code || len(first.Code) == 0 || bytes.Equal(first.Code, second.Code) {
		t.Errorf("%x and %x", first.Code, second.Code)
	}
	for _, c := range a.keys.MailCode(string(first.Purpose), first.Subject, store.EmailKey(""), "bound", code) {
		if bytes.Equal(first.Code, c) {
			t.Error("its code would do")
		}
	}
}

// A browser's list of languages is truncated between two languages.
func TestLanguagesAreCutBetweenTwo(t *testing.T) {
	long := strings.Repeat("x", 128)
	for accept, want := range map[string]string{"de,en": "de,en", "de,fr," + long: "de,fr", long + ",de": "", "": ""} {
		if got := shortLocale(accept); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

// A client's token names no record, whatever the client sends.
func TestLinkTokensNameNoRecord(t *testing.T) {
	for _, about := range []string{rpIDSubject, "removed passkey", "refusal", "stop marks"} {
		if bytes.Equal(hashLinkToken(about+"\x00x"), recordHash(about, "x")) {
			t.Errorf("a token names the record %q", about)
		}
	}
}
