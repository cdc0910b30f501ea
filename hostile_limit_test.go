package auth_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// refusedUnseen are limits whose refusal no answer tells, by the row.
var refusedUnseen = map[string]struct{ limits, why string }{
	"POST /signup signs up once more": {"SendGap", "that the address has an account, whose owner is sent a mail, is not told"},
	"POST /login asked to confirm":    {"SendGap SendPerAddress", "the confirmation that is sent once more is not told of"},
}

// TestEveryLimitRefuses: each request that draws from a limit is refused once that limit
// gives nothing, and then nothing has changed and nothing was sent; found by what each
// row of the hostile store draws, so that a door whose refusal is forgotten fails.
func TestEveryLimitRefuses(t *testing.T) {
	t.Parallel()
	for _, pattern := range slices.Sorted(maps.Keys(hostileRows())) {
		for _, r := range hostileRows()[pattern] {
			t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
				t.Parallel()
				w := newHostileWorld(t, r)
				ref := w.refer(r, "", sabotage{})
				unseen := strings.Fields(refusedUnseen[pattern+" "+r.name].limits)
				for _, limit := range slices.Sorted(maps.Keys(ref.drawn)) {
					if ref.drawn[limit] == 0 || strings.HasPrefix(limit, "Notices") { // notices draw behind what has come about, which no limit undoes
						continue
					}
					p := w.play(trial{row: r, spoil: sabotage{draws: func(draws []store.Draw) []store.Draw {
						for i, d := range draws {
							if d.Cost >= 0 && w.limits[d.Rate.Burst] == limit {
								draws[i].Cost = 2 * d.Rate.Burst
							}
						}
						return draws
					}}})
					for _, v := range wrongRefusal(p, ref, limit, slices.Contains(unseen, limit)) {
						t.Errorf("without %s, answered %s: %s", limit, codeOf(p.answer()), v)
					}
				}
			})
		}
	}
}

// wrongRefusal is what is wrong with how a request was refused. Draws that are of no
// limit with a name are those of one token or code, and of an ID token, which is good
// once.
func wrongRefusal(p *played, ref *reference, limit string, unseen bool) (list []string) {
	result := resultOf(p.answer())
	switch {
	case strings.Contains(result, string(auth.CodeRateLimited)) && !unseen:
	case limit == "" && strings.Contains(result, string(auth.CodeInvalidToken)):
	case unseen && result == resultOf(ref.answer()):
	default:
		list = append(list, fmt.Sprintf("it is not refused, but %s; without a limit %s", result, resultOf(ref.answer())))
	}
	list = append(list, p.is.changed(p.was)...)
	if len(p.mails) > 0 {
		list = append(list, fmt.Sprintf("sends %v", p.mails))
	}
	return list
}
