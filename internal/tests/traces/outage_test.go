package traces_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/pgstores"
	"github.com/authmount/auth/internal/storetap"
)

// If any store call of a request fails, the answer reports an outage, or the request
// succeeds with all its effects. After an outage, repeating the request has the result of a
// request without one: no effect is missing, doubled or left over, and no message is lost or
// sent twice. Every request of the other tests here takes part; on Postgres a sample.
func TestTracesOfOutages(t *testing.T) {
	t.Parallel()
	rows := harness.HostileRows()
	for _, more := range []map[string][]harness.Row{kitRows(), pageRows()} {
		maps.Copy(rows, more)
	}
	for name, newWorld := range map[string]func(t *testing.T, r harness.Row, more ...auth.Option) *traceWorld{"memory": newTraceWorld, "Postgres": newPostgresWorld} {
		sample := name == "Postgres" && !harness.All()
		seed := uint64(0)
		if sample {
			seed = harness.DrawSeed(t)
		}
		for _, pattern := range slices.Sorted(maps.Keys(rows)) {
			for _, r := range rows[pattern] {
				if strings.HasPrefix(pattern, "kit ") && r.Kind != harness.OnStolen || strings.HasSuffix(r.Name, "twice") || strings.HasPrefix(r.Name, "has ended") {
					continue // the meaning of a failure does not depend on the account's owner; some requests are several
				}
				t.Run(name+" "+pattern+" "+title(r, ""), func(t *testing.T) {
					t.Parallel()
					one := pattern == "kit first owner" || r.Name == "imports one whole" || r.Confirm // a world has only one owner, job and decoy of a code
					var more []auth.Option
					if strings.HasPrefix(pattern, "page ") || strings.Contains(pattern, "magic-link/verify") {
						more = append(more, auth.WithCookies(auth.CookieOptions{})) // buttons leave the session there
					}
					w := newWorld(t, r, more...)
					ref := w.effectsOf(harness.Trial{Row: r})
					for _, wrong := range append([]string{""}, ref.Fields...) {
						if wrong != "" {
							if one {
								w = newWorld(t, r, more...)
							}
							ref = w.effectsOf(harness.Trial{Row: r, Wrong: wrong})
						}
						calls := make([]int, ref.N)
						for i := range calls {
							calls[i] = i + 1
						}
						if sample && len(calls) > 0 {
							k := harness.Sampler(t, seed).IntN(len(calls))
							calls = calls[k : k+1]
						}
						for _, k := range calls {
							if one {
								w = newWorld(t, r, more...)
							}
							got := w.effectsOf(harness.Trial{Row: r, Wrong: wrong, Fault: storetap.FailsBefore, K: k})
							if list := got.against(ref); len(list) > 0 {
								t.Errorf("%s, %s, answers %s, then %s:\n%s", got.Trial, got.Failed, harness.ResultOf(got.Answer()), harness.ResultOf(cmp.Or(got.again, got.Answer())), strings.Join(list, "\n"))
							}
						}
					}
				})
			}
		}
	}
}

// newPostgresWorld is newTraceWorld on Postgres.
func newPostgresWorld(t *testing.T, r harness.Row, more ...auth.Option) *traceWorld {
	t.Helper()
	w := &traceWorld{}
	st := pgstores.New(t)
	w.rows = func() map[string]any { return pgstores.Rows(t, st) }
	w.start(t, st, r, more...)
	return w
}

// effects are the effects of a request and, if it met an outage, of the same request made again.
type effects struct {
	*harness.Played
	all   []string // of both
	again *harness.Answer
}

// effectsOf plays a trial.
func (w *traceWorld) effectsOf(tr harness.Trial) *effects {
	w.T.Helper()
	e := &effects{}
	var was map[string]any
	prepare, mails := tr.Row.Prepare, 0
	tr.Row.Prepare = func(s *harness.Scene) func() *harness.Answer {
		do := prepare(s)
		return func() *harness.Answer {
			if s.Evil.Device = append(slices.Clip(s.Evil.Device), w.says...); was == nil {
				was, mails = w.whole(), len(w.Inbox.Messages())
			}
			return do()
		}
	}
	e.Played = w.Play(tr)
	if e.Hit && outage(e.Answer()) {
		e.Evil.Edit = e.Attempt
		e.again = e.Request()
	}
	e.all = w.effects(e.Played, was, mails)
	return e
}

// effects are all differences of the store since it was so, and the messages since then, in
// words that are the same for each scene.
func (w *traceWorld) effects(p *harness.Played, was map[string]any, mails int) []string {
	words := &words{now: w.Clock.Now(), names: map[string]string{}}
	is := w.whole()
	for _, all := range []map[string]any{was, is} {
		for _, name := range []string{"counts", "active", "limits", "buckets"} {
			delete(all, name) // statistics, which may miss an event in an outage
		}
	}
	lines := words.difference(was, is)
	for _, m := range p.Inbox.Messages()[mails:] {
		lines = append(lines, fmt.Sprintf("sent %s to %s", m.Kind, m.To))
	}
	same := strings.NewReplacer(p.Email, "own@mail", strings.ToUpper(p.Email[:4])+p.Email[4:], "own@mail", p.EvilMail, "evil@mail", p.Number, "own number", p.EvilNumber, "evil number")
	for i := range lines {
		lines[i] = ofScene.ReplaceAllString(nameless.ReplaceAllString(same.Replace(lines[i]), "<id>"), "$1$2$3$4$5$6")
	}
	slices.Sort(lines)
	return slices.DeleteFunc(lines, attempted.MatchString)
}

// attempted matches the number of claims of a message, which the trial itself makes.
var attempted = regexp.MustCompile(`(?i)^~ messages <id>.(attempts|next_?at):`)

// ofScene is a part of a row that is another for each scene, or for each attempt to send.
var ofScene = regexp.MustCompile(`(?i)(•••)[^"]*|("last_?step":)\d+|("subject":)"\d+"|("at":)"<now\d{4,}h[^"]*"|((?:last_step|<id>\.(?:user\.)?revision|\.\w*sequence|\.\w*added_?by|\.state):).*|("state":)"(?:[a-z0-9+/]{8,}={0,2}|\\\\x[0-9a-f]+)"|"\w*sequence":\d+,?|"\w*added_?by":\d+,?|"(?:order|ordinal)":\d+,?|"(?:revision|sessions_at_most)":\d+,?|"(?:attempts|next_?at)":[^,]*,|"devices":{[^}]*}},|"last_?sign_?in_?at":"<now0s>",?`)

// outage reports whether an answer says that the service is unavailable.
func outage(a *harness.Answer) bool {
	return a.Status == http.StatusServiceUnavailable || strings.HasSuffix(harness.ResultOf(a), string(auth.CodeUnavailable)) ||
		a.Status == 0 && strings.Contains(string(a.Body), storetap.ErrFault.Error()) // the internal API returns the error
}

var (
	// usedUp are lines that remain of evidence which an outage cost: a token or code that
	// counts once, and the failure.
	usedUp = regexp.MustCompile(`(?i)^- tokens |last_?step|last_?used_?at|^~ users <id>\.factors:|^~ factors <id>\.state|"sign_in.failed"|^~ users <id>\.devices|^- devices|^~ users <id>\.(user\.)?(updated|revision|sequence)`)
	// follows are lines of a change that comes after the one which uses the evidence up: a
	// session, or the link to a new password. The person signs in, or requests the link.
	follows = regexp.MustCompile(`(?i)^. (sessions|tokens|devices) |"user.signed_in"|"device.new"|"new_device"|^sent new_device|"reset_password"|^sent reset_password|^~ users <id>\.(devices|(user\.)?(last_?sign_?in|updated|revision|sequence)|sessions_at_most)`)
	// lost matches a notice with a recorded loss.
	lost = regexp.MustCompile(`"message":"(\w+)","reason":"unavailable"`)
)

// tolerated are differences that an outage may make, by the end of a row's title: the
// method that fails, and the lines that differ.
var tolerated = map[string]struct{ method, lines, reason string }{
	"all":                                {"", `"user.updated"|evision|phone_code`, "each member of the body is a change of its own"},
	"signs up once more":                 {"", `account_exists|^\+ tokens`, "an answer that differs reports that the address has an account"},
	"address of another":                 {"", `account_exists|^\+ tokens`, "an answer that differs reports that the address has an account"},
	"accepts an account's at a provider": {"", `invitation.accepted|[.](Roles|roles)|evision|^[+] revocations`, "the sign-in links the identity, and the invitation waits for the next"},
	"asked to confirm":                   {"", `verify_email`, "an answer that differs reports that the password is right"},
	"confirms by code":                   {"UpdateUser", `dentities`, "the next sign-in renews the identity; the account is confirmed"},
	"with an outdated hash":              {"UpdateUser", `password_hash|evision`, "the next sign-in hashes it again"},
}

// tolerates reports whether a line may differ.
func (e *effects) tolerates(line string) bool {
	t, ok := tolerated[e.Row.Name]
	return ok && (t.method == "" || t.method == e.Failed) && regexp.MustCompile(t.lines).MatchString(line)
}

// against returns the differences from the effects without an outage.
func (e *effects) against(ref *effects) (list []string) {
	last := e.Answer()
	if e.again != nil {
		last = e.again
		if a := e.Answer(); a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == "" {
			list = append(list, "does not say when to come back")
		}
	}
	if limit := harness.AttemptFields()[e.Wrong]; e.again == nil && e.Net[limit] < ref.Net[limit] {
		list = append(list, "the attempt is not counted")
	}
	extra, missing := unlike(e.all, ref.all), unlike(ref.all, e.all)
	extra = slices.DeleteFunc(extra, func(l string) bool { // a token that was sent to no one grants nothing
		return strings.Contains(l, `"sign_in.failed"`) && strings.Contains(l, `"reason":"unavailable"`) || strings.HasPrefix(l, "+ tokens ")
	})
	signedOut := e.Failed == "Session" && len(e.all) == 0 // a page or form that is shown as if signed out
	if e.again != nil && e.again.Status/100 == 4 && harness.ResultOf(e.again) != harness.ResultOf(ref.Answer()) {
		// The evidence is used up: the change that used it is there as a whole, or not at all.
		extra = slices.DeleteFunc(extra, usedUp.MatchString)
		later := func(l string) bool { return follows.MatchString(l) || usedUp.MatchString(l) }
		whole := slices.DeleteFunc(slices.Clone(ref.all), later)
		if missing = slices.DeleteFunc(missing, later); len(missing) == len(whole) {
			missing = nil
		}
	} else if got, want := shape(last), shape(ref.Answer()); got != want && (!signedOut || last.Status != ref.Answer().Status) {
		list = append(list, fmt.Sprintf("answers %s\nand without an outage %s", got, want))
	}
	extra, missing = e.notices(extra, missing)
	for what, lines := range map[string][]string{"only with it: ": extra, "missing: ": missing} {
		for _, l := range slices.DeleteFunc(lines, e.tolerates) {
			list = append(list, what+l)
		}
	}
	return list
}

// notices leaves out those that are recorded as lost: to an address that nobody has
// verified, if the store cannot say whether the limit allows one.
func (e *effects) notices(extra, missing []string) (more, less []string) {
	for _, l := range extra {
		kind := lost.FindStringSubmatch(l)
		own := kind != nil && slices.Contains(missing, "sent "+kind[1]+" to own@mail")
		if kind == nil || e.Failed != "Take" || own && e.Was.Credentials.User.EmailVerified() {
			more = append(more, l)
			continue
		}
		missing = slices.DeleteFunc(missing, func(m string) bool {
			return strings.HasPrefix(m, "sent "+kind[1]+" ") || strings.HasPrefix(m, "+ message_log") && strings.Contains(m, `"`+kind[1]+`"`)
		})
	}
	return more, missing
}

// unlike are the lines of one list that another lacks.
func unlike(of, other []string) (list []string) {
	rest := slices.Clone(other)
	for _, line := range of {
		if i := slices.Index(rest, line); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			list = append(list, line)
		}
	}
	return list
}

var shapeless = regexp.MustCompile(`(name="token" value|href)="[^"]*"`)

// shape is an answer without its values: its status, the names of its headers and cookies,
// the members of its body that are set, and the parameters of the address it leads to.
func shape(a *harness.Answer) string {
	parts := []string{harness.ResultOf(a)}
	parts = append(parts, slices.Sorted(maps.Keys(a.Header))...)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		parts = append(parts, fmt.Sprint("cookie ", c.Name, " ", c.MaxAge < 0))
	}
	if to, err := url.Parse(a.Header.Get("Location")); err == nil {
		parts = append(parts, slices.Sorted(maps.Keys(to.Query()))...)
		fragment, _ := url.ParseQuery(to.Fragment)
		parts = append(parts, slices.Sorted(maps.Keys(fragment))...)
	}
	var body any
	if json.Unmarshal(a.Body, &body) == nil {
		for path, v := range leaves("", body, map[string]any{}) {
			if v != nil && v != "" && v != false {
				parts = append(parts, path)
			}
		}
	} else {
		parts = append(parts, fmt.Sprint(strings.Count(string(a.Body), "<"), shapeless.MatchString(string(a.Body))))
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, ", ")
}
