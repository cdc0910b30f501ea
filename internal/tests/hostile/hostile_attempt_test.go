package hostile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// Every attempt that was checked was counted, whatever the store does meanwhile.
func TestHostileStoreCountsGuesses(t *testing.T) {
	t.Parallel()
	draw := chances(t)
	for _, pattern := range slices.Sorted(maps.Keys(harness.HostileRows())) {
		for _, r := range harness.HostileRows()[pattern] {
			t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
				t.Parallel()
				w := harness.NewHostileWorld(t, r)
				for _, field := range refer(w, r, "", harness.Sabotage{}).Fields {
					ref := refer(w, r, field, harness.Sabotage{})
					for _, v := range guessesAreCounted(ref.Played, ref) {
						t.Error(v)
					}
					for _, tr := range draw(t, ref.N) {
						tr.Row = r
						right := w.Play(tr)
						tr.Wrong = field
						wrong := w.Play(tr)
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

// isWrong reports whether an answer says that the secret in a field was wrong.
func isWrong(a *harness.Answer, field string) bool {
	code := map[string]auth.Code{
		"password": auth.CodeInvalidCredentials, "current_password": auth.CodeInvalidCredentials,
		"totp_code": auth.CodeInvalidTOTPCode, "recovery_code": auth.CodeInvalidTOTPCode, "otp": auth.CodeInvalidCode,
	}[field]
	return strings.HasSuffix(harness.CodeOf(a), string(code))
}

// judged returns how many wrong secrets were checked: the number that answers or hashing
// work show, and the most that is possible.
func judged(p *harness.Played) (told, most int) {
	if p.Wrong == "" {
		return 0, 0
	}
	for _, a := range p.Answers {
		if isWrong(a, p.Wrong) {
			told++
		}
	}
	switch p.Wrong {
	case "password", "current_password":
		told = max(told, int(p.Hashes)) //nolint:gosec // a few
		return told, told
	case "otp":
		return told, max(told, p.Tried)
	}
	return told, told
}

// guessesAreCounted: a wrong attempt that was checked stays counted. One that was not
// checked is refunded, unless the store did not report the draw. A right attempt that
// succeeds is refunded.
func guessesAreCounted(p *harness.Played, ref *reference) (list []string) {
	told, most := judged(p)
	for _, field := range p.Fields {
		limit := harness.AttemptFields()[field]
		n := p.Net[limit]
		spare := 0
		if p.Struck[limit] && p.Fault == storetap.FailsAfter {
			spare = 1
		}
		switch {
		case field == p.Wrong && (n < told || n > most+spare):
			list = append(list, fmt.Sprintf("%d to %d wrong guesses were judged, and %d stay counted in %s", told, most, n, limit))
		case p.Wrong == "" && succeeds(p, ref) && !isWrong(p.Answer(), field) && n > 0:
			list = append(list, fmt.Sprintf("a right guess stays counted in %s, %d times", limit, n))
		}
	}
	return list
}

// tellsApart: under the same fault, a right attempt and a wrong one that was not counted
// look the same.
func tellsApart(right, wrong *harness.Played) (list []string) {
	limit := harness.AttemptFields()[wrong.Wrong]
	if wrong.Drawn[limit] > 0 {
		return nil
	}
	if r, w := harness.ResultOf(right.Answer()), harness.ResultOf(wrong.Answer()); r != w {
		list = append(list, fmt.Sprintf("a right guess is answered %s and a wrong one %s, which was not drawn for of %s", r, w, limit))
	}
	if right.Hashes != wrong.Hashes {
		list = append(list, fmt.Sprintf("a right guess costs %d hashes and a wrong one %d, which was not drawn for of %s", right.Hashes, wrong.Hashes, limit))
	}
	return list
}

// refusedUnseen are the limits that refuse without a sign in the answer, by row.
var refusedUnseen = map[string]struct{ limits, why string }{
	"POST /signup signs up once more": {"SendGap", "that the address has an account, whose owner is sent a mail, is not told"},
	"POST /login asked to confirm":    {"SendGap SendPerAddress", "the confirmation that is sent once more is not told of"},
	"POST /login confirms by code":    {"CodesPerAddress CodesPerAddressDaily CodesPerRecipientDaily CodesPerIP", "that the password is right is not told"},
}

// TestEveryLimitRefuses: each request that draws from a limit is refused once that limit is
// used up. It then changes and sends nothing. The draws of each row of the hostile store
// define the cases, so an endpoint without the refusal fails.
func TestEveryLimitRefuses(t *testing.T) {
	t.Parallel()
	for _, pattern := range slices.Sorted(maps.Keys(harness.HostileRows())) {
		for _, r := range harness.HostileRows()[pattern] {
			t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
				t.Parallel()
				w := harness.NewHostileWorld(t, r)
				ref := refer(w, r, "", harness.Sabotage{})
				unseen := strings.Fields(refusedUnseen[pattern+" "+r.Name].limits)
				for _, limit := range slices.Sorted(maps.Keys(ref.Drawn)) {
					if ref.Drawn[limit] == 0 || strings.HasPrefix(limit, "Notices") || limit == "" { // drawn after the change is committed, and no limit undoes it: notices, and refused changes of address
						continue
					}
					p := w.Play(harness.Trial{Row: r, Spoil: harness.Sabotage{Draws: func(draws []store.Draw) []store.Draw {
						for i, d := range draws {
							if d.Cost >= 0 && w.Limits[d.Rate.Burst] == limit {
								draws[i].Cost = 2 * d.Rate.Burst
							}
						}
						return draws
					}}})
					for _, v := range wrongRefusal(p, ref, limit, slices.Contains(unseen, limit)) {
						t.Errorf("without %s, answered %s: %s", limit, harness.CodeOf(p.Answer()), v)
					}
				}
			})
		}
	}
}

// wrongRefusal returns the faults of a request's refusal. Draws without a named limit belong
// to one token or code, or to an ID token, which is valid once.
func wrongRefusal(p *harness.Played, ref *reference, limit string, unseen bool) (list []string) {
	result := harness.ResultOf(p.Answer())
	switch {
	case (strings.Contains(result, string(auth.CodeRateLimited)) || result == "429") && !unseen: // a page has only the status
	case limit == "" && strings.Contains(result, string(auth.CodeInvalidToken)):
	case unseen && (result == harness.ResultOf(ref.Answer()) || strings.Contains(result, string(auth.CodeInvalidCredentials))):
	default:
		list = append(list, fmt.Sprintf("it is not refused, but %s; without a limit %s", result, harness.ResultOf(ref.Answer())))
	}
	list = append(list, p.Is.Changed(p.Was)...)
	if len(p.Mails) > 0 {
		list = append(list, fmt.Sprintf("sends %v", p.Mails))
	}
	return list
}
