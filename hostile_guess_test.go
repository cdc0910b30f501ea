package auth_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
)

// Every guess that was judged was drawn for, whatever the store does meanwhile.
func TestHostileStoreCountsGuesses(t *testing.T) {
	t.Parallel()
	draw := chances(t)
	for _, pattern := range slices.Sorted(maps.Keys(hostileRows())) {
		for _, r := range hostileRows()[pattern] {
			t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
				t.Parallel()
				w := newHostileWorld(t, r)
				for _, field := range w.refer(r, "", sabotage{}).fields {
					ref := w.refer(r, field, sabotage{})
					for _, v := range guessesAreCounted(ref.played, ref) {
						t.Error(v)
					}
					for _, tr := range draw(t, ref.n) {
						tr.row = r
						right := w.play(tr)
						tr.wrong = field
						wrong := w.play(tr)
						for _, v := range violations(wrong, ref) {
							t.Error(v)
						}
						for _, v := range tellsApart(right, wrong) {
							t.Errorf("%s: %s", tr, v)
						}
					}
				}
			})
		}
	}
}

// isWrong tells whether an answer says that the guess of a field was wrong.
func isWrong(a *answer, field string) bool {
	code := map[string]auth.Code{
		"password": auth.CodeInvalidCredentials, "current_password": auth.CodeInvalidCredentials,
		"totp_code": auth.CodeInvalidTOTPCode, "recovery_code": auth.CodeInvalidTOTPCode, "otp": auth.CodeInvalidCode,
	}[field]
	return strings.HasSuffix(codeOf(a), string(code))
}

// judged is how many wrong guesses were judged: as far as anybody was told or
// could tell from the work, and at most.
func (p *played) judged() (told, most int) {
	if p.wrong == "" {
		return 0, 0
	}
	for _, a := range p.answers {
		if isWrong(a, p.wrong) {
			told++
		}
	}
	switch p.wrong {
	case "password", "current_password":
		told = max(told, int(p.hashes)) //nolint:gosec // a few
		return told, told
	case "otp":
		return told, max(told, p.tried)
	}
	return told, told
}

// guessesAreCounted: a wrong guess that was judged stays counted, and one that was
// not judged is given back, unless the caller did not learn that it was drawn for.
// A right one that comes to something is given back.
func guessesAreCounted(p *played, ref *reference) (list []string) {
	told, most := p.judged()
	for _, field := range p.fields {
		limit := guesses()[field]
		n := p.net[limit]
		spare := 0
		if p.struck[limit] && p.fault == storetap.FailsAfter {
			spare = 1
		}
		switch {
		case field == p.wrong && (n < told || n > most+spare):
			list = append(list, fmt.Sprintf("%d to %d wrong guesses were judged, and %d stay counted in %s", told, most, n, limit))
		case p.wrong == "" && p.succeeds(ref) && !isWrong(p.answer(), field) && n > 0:
			list = append(list, fmt.Sprintf("a right guess stays counted in %s, %d times", limit, n))
		}
	}
	return list
}

// tellsApart: under the same fault, a right guess and a wrong one that was not
// drawn for look the same.
func tellsApart(right, wrong *played) (list []string) {
	limit := guesses()[wrong.wrong]
	if wrong.drawn[limit] > 0 {
		return nil
	}
	if r, w := resultOf(right.answer()), resultOf(wrong.answer()); r != w {
		list = append(list, fmt.Sprintf("a right guess is answered %s and a wrong one %s, which was not drawn for of %s", r, w, limit))
	}
	if right.hashes != wrong.hashes {
		list = append(list, fmt.Sprintf("a right guess costs %d hashes and a wrong one %d, which was not drawn for of %s", right.hashes, wrong.hashes, limit))
	}
	return list
}
