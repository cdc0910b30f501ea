package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

// testKeys are keys that a test may sign with.
func testKeys(t *testing.T) *keys.Ring {
	t.Helper()
	ring, err := (&config{secrets: [][]byte{[]byte("a secret of the tests', 32 bytes")}}).newKeys()
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// What is given back is taken back, also where the rate was stricter before.
func TestNothingKeepsARefundOut(t *testing.T) {
	now := time.Unix(1767323045, 0)
	r := Rate{Burst: 2, Per: 2 * time.Second}
	if next, ok, _, _ := r.Apply(now.Add(10*time.Second), now, -1); !ok || !next.Equal(now.Add(9*time.Second)) {
		t.Errorf("%v %t", next, ok)
	}
}

// Of several guesses about one thing one draws at a time: the next one has to know
// whether there is another to wait for.
func TestOneGuessDrawsAtATime(t *testing.T) {
	p := &pendingGuesses{of: map[string]*pendingGuess{}}
	at := p.join("ada")
	if p.join("ada") != at {
		t.Fatal("not about the same")
	}
	at.turn <- struct{}{}
	select {
	case at.turn <- struct{}{}:
		t.Error("two draw at once")
	default:
	}
}

// Who is behind a change is told by its authority before its event.
func TestActorsAreOfTheAuthority(t *testing.T) {
	e := Event{UserID: "ada", SessionID: "s"}
	for by, want := range map[Authority]Actor{
		{System: "sweep"}: {Kind: store.ActorSystem, ID: "sweep"},
		{External: "x"}:   {Kind: store.ActorExternal, ID: "x"},
		{Proof: true}:     {Kind: store.ActorUser, ID: "ada", SessionID: "s"},
	} {
		if got := actorOf(by, e); got != want {
			t.Errorf("%+v: %+v, want %+v", by, got, want)
		}
	}
}

// An ID token is remembered for as long as it is good, and a minute.
func TestUsedIDTokensAreRememberedLongEnough(t *testing.T) {
	now := time.Unix(1767323045, 0)
	a := &Auth{keys: testKeys(t), cfg: config{now: func() time.Time { return now }}}
	p := &oauthClient{}
	for left, want := range map[time.Duration]time.Duration{-20 * time.Second: time.Minute, 0: time.Minute, time.Hour: 61 * time.Minute} {
		if d := a.use(p, nativeToken{expires: now.Add(left)}, 1); d.Rate != (Rate{Burst: 1, Per: want}) || d.Cost != 1 {
			t.Errorf("%v left: %+v", left, d)
		}
	}
}

// A nonce that only begins like a SHA-256 is none.
func TestNonceThatBeginsLikeAHash(t *testing.T) {
	sum := sha256.Sum256([]byte("x"))
	whole := hex.EncodeToString(sum[:])
	if !slices.Equal(sha256In(whole), sum[:]) {
		t.Error("a hash is not seen")
	}
	for _, more := range []string{"0", "zz", "=", "!"} {
		if got := sha256In(whole + more); got != nil {
			t.Errorf("%q: %x", more, got)
		}
	}
}

// A key ring signs by the algorithm of the options.
func TestKeyringSignsByTheAlgorithmChosen(t *testing.T) {
	for _, alg := range []string{"ES256", "EdDSA", "HS256"} {
		k, err := (&config{secrets: [][]byte{[]byte("a secret of the tests', 32 bytes")}, tokens: TokenOptions{Algorithm: alg}}).newKeys()
		if err != nil || k.Signing().Algorithm != alg {
			t.Errorf("%s: %+v, %v", alg, k, err)
		}
	}
}

// The log tells of a redirect that was refused where it led, without what may be secret
// of it, and the first few addresses that would have been allowed.
func TestRefusedRedirectsAreDescribed(t *testing.T) {
	long := strings.Repeat("a", 200-len("https://evil.test/"))
	for raw, want := range map[string]string{
		"https://ada:hush@evil.test/in?token=hush#hush": "https://evil.test/in", "/in": "/in", "": "", "https://evil.test/%": "(not a URL)",
		"https://evil.test/" + long: "https://evil.test/" + long, "https://evil.test/" + long + "b": "https://evil.test/" + long + "…",
	} {
		if got := describedURL(raw); got != want {
			t.Errorf("%q is told as %q", raw, got)
		}
	}
	var all []redirect.Pattern
	for n, want := range []string{
		"nothing", "https://0.test/", "https://0.test/, https://1.test/", "https://0.test/, https://1.test/, https://2.test/", "https://0.test/, https://1.test/, https://2.test/, https://3.test/",
		"https://0.test/, https://1.test/, https://2.test/, https://3.test/, https://4.test/", "https://0.test/, https://1.test/, https://2.test/, https://3.test/, https://4.test/, …",
	} {
		err := notListed("https://evil.test/?a=b", all, store.ErrNotFound)
		if got := err.Error(); got != "redirect_to https://evil.test/: "+store.ErrNotFound.Error()+"; WithRedirectURLs has "+want || !errors.Is(err, store.ErrNotFound) || !errors.As(err, &mistake{}) {
			t.Errorf("%d: %s", n, got)
		}
		all = append(all, redirect.Pattern{Scheme: "https", Host: string(rune('0'+n)) + ".test", Path: "/"})
	}
}

// A code of nobody's link is one that no guess is.
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

// A browser's languages are cut between two of them.
func TestLanguagesAreCutBetweenTwo(t *testing.T) {
	long := strings.Repeat("x", 128)
	for accept, want := range map[string]string{"de,en": "de,en", "de,fr," + long: "de,fr", long + ",de": "", "": ""} {
		if got := shortLocale(accept); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

// What changes again and again is given up, and may be tried later; what is decided
// against is not tried again.
func TestChangeGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Code
		n    int
	}{
		"changed meanwhile": {store.ErrStale, CodeUnavailable, 20},
		"refused":           {fail(CodeUserBanned, store.ErrStale), CodeUserBanned, 1},
	} {
		n := 0
		v, err := change(func() (int, error) { n++; return n, c.err })
		var e *Error
		if n != c.n || !errors.As(err, &e) || e.Code != c.want || c.n > 1 && (v != 0 || e.RetryAfter != time.Second) {
			t.Errorf("%s: %d times, %d, %v", name, n, v, err)
		}
	}
}
