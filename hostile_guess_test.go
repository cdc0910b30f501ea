package auth_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
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
					for _, v := range guessesAreCounted(ref.played) {
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
						for _, v := range append(guessesAreCounted(wrong), tellsApart(right, wrong)...) {
							t.Errorf("%s: %s", tr, v)
						}
					}
				}
			})
		}
	}
}

// judged is how many wrong guesses were judged, as far as anybody could tell.
func (p *played) judged() int {
	told := 0
	for _, a := range p.answers {
		switch code := codeOf(a); {
		case strings.HasSuffix(code, string(auth.CodeInvalidCredentials)), strings.HasSuffix(code, string(auth.CodeInvalidTOTPCode)), strings.HasSuffix(code, string(auth.CodeInvalidCode)):
			told++
		}
	}
	switch p.wrong {
	case "":
		return 0
	case "password", "current_password":
		return max(told, int(p.hashes))
	case "otp":
		return max(told, p.tried)
	}
	return told
}

// guessesAreCounted: of a wrong guess nobody learns more than of none, unless it
// was drawn for. What tells it from a right one is the answer and the work.
func guessesAreCounted(p *played) (list []string) {
	if p.wrong == "" {
		return nil
	}
	limit := guesses()[p.wrong]
	if n := p.judged(); n > p.drawn[limit] {
		list = append(list, fmt.Sprintf("%d wrong guesses were judged, %d drawn for of %s", n, p.drawn[limit], limit))
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
	if r, w := codeOf(right.answer()), codeOf(wrong.answer()); r != w {
		list = append(list, fmt.Sprintf("a right guess is answered %s and a wrong one %s, which was not drawn for of %s", r, w, limit))
	}
	if right.hashes != wrong.hashes {
		list = append(list, fmt.Sprintf("a right guess costs %d hashes and a wrong one %d, which was not drawn for of %s", right.hashes, wrong.hashes, limit))
	}
	return list
}
