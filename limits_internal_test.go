package auth

import (
	"bytes"
	"context"
	"encoding/base32"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"log/slog"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Constants that no other test covers, or only by name. Change them deliberately, and
// their documentation with them.
func TestFiguresAreAsDecided(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct{ is, want time.Duration }{
		"events are kept, by default":                           {defaultRetention, 90 * day},
		"captchas of an address are counted":                    {captchaPeriod, 5 * time.Minute},
		"the link for the first owner":                          {firstOwnerLife, 30 * time.Minute},
		"a guess, from the draw to the end":                     {attemptTimeout, 30 * time.Second},
		"a run of failures at nobody's name":                    {unknownRunLife, day},
		"tries at a code stay used up":                          {codeAttemptsLife, day},
		"what no guess took along waits to be given back":       {refundAfter, time.Second},
		"the statement that gives back":                         {refundTimeout, 10 * time.Second},
		"between two looks at the settings":                     {settingsEvery, 900 * time.Millisecond},
		"a look at the settings":                                {settingsWait, 5 * time.Second},
		"a message without a token is worth sending":            {noticeLife, 3 * day},
		"what became of a message is told":                      {store.MessageLogLife, 7 * day},
		"somebody is at the provider":                           {oauthLife, 10 * time.Minute},
		"a provider is waited for, by default":                  {providerTimeout, 10 * time.Second},
		"a token of a provider's is remembered":                 {maxIDTokenLife, 30 * day},
		"a link to sign in":                                     {magicLife, 15 * time.Minute},
		"a link to confirm an address":                          {verifyLife, day},
		"a link to choose a new password":                       {resetLife, time.Hour},
		"a link to choose the first password":                   {welcomeLife, 7 * day},
		"a code in a mail (NIST SP 800-63B-4: 10 min)":          {mailCodeLife, 10 * time.Minute},
		"a link that stops a change":                            {recoveryLinkLife, 7 * day},
		"an invitation, by default":                             {invitationLife, 7 * day},
		"a sign-in is fresh":                                    {freshFor, 15 * time.Minute},
		"the second factor is waited for":                       {mfaLife, 5 * time.Minute},
		"somebody is impersonated":                              {ImpersonationLife, 15 * time.Minute},
		"a device is remembered":                                {store.DeviceLife, 400 * day},
		"a device can be trusted":                               {store.MaxTrust, 30 * day},
		"between two outdated refresh tokens that are let pass": {store.ReplayGap, day},
		"a body is waited for":                                  {bodyWait, 10 * time.Second},
		"a test message is waited for":                          {testWait, 10 * time.Second},
		"public keys are remembered":                            {publicKeysFor, time.Second / 2},
		"between two sweeps":                                    {sweepEvery, time.Minute},
	} {
		if c.is != c.want {
			t.Errorf("%s: %s, not %s", name, c.is, c.want)
		}
	}
	for name, c := range map[string]struct{ is, want time.Time }{
		"whoever was anonymised is banned": {store.AnonymizedUntil(), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)},
	} {
		if !c.is.Equal(c.want) {
			t.Errorf("%s until %s, not %s", name, c.is, c.want)
		}
	}
	for name, c := range map[string]struct{ is, want int }{
		"bytes of a captcha's token":                      {maxCaptcha, 8 << 10},
		"captchas of an address":                          {captchasPerIP, 60},
		"times as many failures from an address":          {ipFailureFactor, 3},
		"failures in a row of which the owner is told":    {noticeAfterFailures, 20},
		"wrong guesses that a code survives":              {maxCodeAttempts, 5},
		"of all who name requests":                        {maxSharedCodeAttempts, 50},
		"what a guess gives back":                         {refundsAtOnce, 16},
		"what a statement gives back":                     {refundsBatch, 256},
		"what waits to be given back":                     {refundsAtMost, 16384},
		"what a sweep takes at once":                      {sweepBatch, 1000},
		"users of a step of an import":                    {importBatch, 500},
		"events of a page of an export":                   {exportPage, 500},
		"messages of an inbox":                            {inboxSize, 200},
		"bytes of a path that tells of a mount":           {maxMissed, 256},
		"bytes of Accept-Language":                        {maxLanguages, 256},
		"bytes of a password":                             {maxPasswordBytes, 4096},
		"ids of a query":                                  {store.MaxQueryIDs, 200},
		"events of a page, by default":                    {store.DefaultEventLimit, 50},
		"devices of a user":                               {store.MaxDevices, 50},
		"the shortest id of a device":                     {minDeviceID, 16},
		"the longest id of a device":                      {maxDeviceID, 128},
		"characters of a name":                            {maxName, 200},
		"bytes of metadata":                               {maxMetadata, 16 << 10},
		"bytes of a secret of a second factor (RFC 4226)": {totpSecret, 20},
		"seconds of a step of a second factor (RFC 6238)": {totpPeriod, 30},
		"steps of a second factor either way":             {totpSkew, 1},
		"recovery codes":                                  {recoveryN, 10},
		"characters of a recovery code":                   {recoveryLen, 10},
		"tries at a message that a store keeps":           {storedMailAttempts, 20},
		"bytes of a subject at a provider":                {maxSubject, 255},
		"a switch that is on":                             {int(On), 1},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, not %d", name, c.is, c.want)
		}
	}
}

// Documented maximums are accepted, and values just above them are refused.
func TestBoundsAreAsPromised(t *testing.T) {
	a := &Auth{keys: testKeys(t), cfg: config{now: time.Now}, factors: struct{ store.FactorStore }{}}
	xs := func(n int) string { return strings.Repeat("x", max(n, 0)) }
	private := func(n int) string { return ("en-x" + strings.Repeat("-aaaaaaaa", 10))[:n] } // a language tag of a given length
	for name, c := range map[string]struct {
		takes       func(n int) bool
		least, most int
	}{
		"a subject at a provider (OpenID Connect Core 1.0, section 2)": {func(n int) bool { return isSubject(xs(n)) }, 1, 255},
		"an error code of a provider":                                  {func(n int) bool { return errorToken(xs(n)) == xs(n) }, 0, 64},
		"a user's own language": {func(n int) bool {
			return preferredLocale(t.Context(), User{UserMetadata: map[string]any{"locale": private(n)}}) == private(n)
		}, 0, 63},
		"languages of a browser": {func(n int) bool { return shortLocale(xs(n)) == xs(n) }, 0, 128},
		"notes about an account": {func(n int) bool { return checkNotes(xs(n)) == nil }, 0, 16 << 10},
		"seconds that an invitation is good for": {func(n int) bool {
			_, err := kit{a}.CheckInvitation(host.Invitation{Email: "ada@example.com"}, time.Duration(n)*time.Second)
			return err == nil
		}, 300, 30 * 24 * 3600},
		"a TOTP secret from elsewhere": {func(n int) bool {
			_, err := a.importTOTP("u", base32.StdEncoding.EncodeToString([]byte(xs(n))), a.now())
			return err == nil
		}, 10, 64},
		"a name of a role":           {func(n int) bool { return checkRoleName(xs(n)) == nil }, 1, 64},
		"a name of a sender":         {func(n int) bool { return checkSenderName(xs(n)) == nil }, 1, 60},
		"an id of a request":         {func(n int) bool { return validRequestID(xs(n)) }, 1, 128},
		"an id of a device":          {func(n int) bool { return validDeviceID(xs(n)) }, minDeviceID, maxDeviceID},
		"a verifier (RFC 7636, 4.1)": {func(n int) bool { return checkVerifier(challengeOf(xs(n)), xs(n)) == nil }, 43, 128},
		"a full name":                {func(n int) bool { _, err := cleanName(strings.Repeat("ü", n)); return err == nil }, 0, maxName},
		"metadata":                   {func(n int) bool { return checkMetadata(map[string]any{"": xs(n - len(`{"":""}`))}) == nil }, 0, maxMetadata},
		"a text of a list":           {func(n int) bool { return kit{a}.Shorten(xs(n)) == xs(n) }, 0, 300},
		"a code from a provider": {func(n int) bool {
			return (&oauthClient{}).checkCallback(endpoints{}, OAuthCallback{Code: xs(n)}) == nil
		}, 1, 4096},
	} {
		if c.least > 0 && (c.takes(c.least-1) || !c.takes(c.least)) {
			t.Errorf("%s: %d is not the least", name, c.least)
		}
		if !c.takes(c.most) || c.takes(c.most+1) {
			t.Errorf("%s: %d is not the most", name, c.most)
		}
	}
}

// A revoked key stops working everywhere within a second: the cache may use half of it,
// and reading the keys the other half.
func TestKeysAreRememberedHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(ago time.Duration) *knownKeys { return &knownKeys{at: time.Now().Add(-ago)} }
		if !read(time.Second/2 - 1).fresh() {
			t.Error("forgotten too early")
		}
		if read(time.Second/2).fresh() || (*knownKeys)(nil).fresh() {
			t.Error("remembered too long")
		}
	})
}

// The defaults that the comments of options name are the actual ones.
func TestDefaultsAreAsDocumented(t *testing.T) {
	var mail MailOptions
	mail.defaults()
	var phone PhoneOptions
	if err := phone.check(); err != nil {
		t.Fatal(err)
	}
	sessions := SessionOptions{}.withDefaults()
	sessions.IdleTimeout = defaultSettings(&config{}).IdleTimeout
	checked := 0
	for _, o := range []struct {
		file string
		v    any
	}{
		{"limit.go", RateLimits{}.withDefaults()},
		{"password.go", testPasswords(t, PasswordOptions{}).o},
		{"options.go", sessions},
		{"options.go", TokenOptions{Life: token.Options{}.Lifetime(), Remember: token.DefaultRemember}},
		{"mail.go", mail},
		{"otp.go", phone},
		{"captcha.go", *configOf(WithCaptcha(CaptchaOptions{Verifier: solved{}})).captcha},
	} {
		v := reflect.ValueOf(o.v)
		docs := fieldDocs(t, o.file, v.Type().Name())
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if want := documentedDefault(docs[name]); want != "" {
				checked++
				if got := spelt(v.Field(i).Interface()); got != want {
					t.Errorf("%T.%s: %s, and its doc says %s", o.v, name, got, want)
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d defaults were found", checked)
	}
	if docs := fieldDocs(t, "mail.go", "MailOptions"); !strings.Contains(docs["Attempts"], fmt.Sprintf("default %d (about four hours) with a store that keeps messages (store.Journal), else %d", storedMailAttempts, mail.Attempts)) {
		t.Errorf("%d and %d tries: %s", storedMailAttempts, mail.Attempts, docs["Attempts"])
	}
	if r := (RateLimits{}).withDefaults().ConsecutiveFailures; r != (Rate{Burst: 100, Per: 10 * 365 * 24 * time.Hour}) || int(r.Per/time.Duration(r.Burst)/(24*time.Hour)) != 36 {
		t.Errorf("%+v", r)
	}
	off := RateLimits{Off: true, LoginPerIP: Rate{Burst: 1, Per: time.Second}}
	if got := off.withDefaults(); got != (RateLimits{Off: true}) {
		t.Errorf("no limits, and %+v", got)
	}
	own := RateLimits{LoginPerIP: Rate{Burst: 1, Per: time.Second}, SendGap: Rate{Burst: -1}}
	if got := own.withDefaults(); got.LoginPerIP != own.LoginPerIP || got.SendGap != own.SendGap || got.SendPerIP.Burst != 30 {
		t.Errorf("%+v", got)
	}
}

// fieldDocs returns the comments of a struct's fields.
func fieldDocs(t *testing.T, file, name string) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, id := range f.Names {
				docs[id.Name] = strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
			}
		}
		return false
	})
	if len(docs) == 0 {
		t.Fatalf("no struct %s in %s", name, file)
	}
	return docs
}

var (
	rateDoc    = regexp.MustCompile(`(\d+) in (\d+) (s|min|h)\b`)
	argonDoc   = regexp.MustCompile(`default m=(\d+) KiB, t=(\d+), p=(\d+)`)
	defaultDoc = regexp.MustCompile(`[Dd]efault (\d[\d,]*)(?: ?(s|min|minutes|days)\b)?(?:[;,.]|$)`)
)

// documentedDefault returns the default that a comment names, or "".
func documentedDefault(doc string) string {
	unit := map[string]time.Duration{"s": time.Second, "min": time.Minute, "minutes": time.Minute, "h": time.Hour, "days": 24 * time.Hour}
	if m := rateDoc.FindStringSubmatch(doc); m != nil {
		n, _ := strconv.Atoi(m[2])
		return m[1] + " in " + (time.Duration(n) * unit[m[3]]).String()
	}
	if m := argonDoc.FindStringSubmatch(doc); m != nil {
		return fmt.Sprintf("m=%s,t=%s,p=%s", m[1], m[2], m[3])
	}
	m := defaultDoc.FindStringSubmatch(doc)
	if m == nil {
		return ""
	}
	digits := strings.ReplaceAll(m[1], ",", "")
	if m[2] == "" {
		return digits
	}
	n, _ := strconv.Atoi(digits)
	return (time.Duration(n) * unit[m[2]]).String()
}

func spelt(v any) string {
	switch v := v.(type) {
	case Rate:
		return fmt.Sprintf("%d in %s", v.Burst, v.Per)
	case Argon2idParams:
		return fmt.Sprintf("m=%d,t=%d,p=%d", v.Memory, v.Time, v.Threads)
	}
	return fmt.Sprint(v)
}

// Code that did not draw from the limits creates no account and sends no requested
// message.
func TestNothingComesOfWhatDrewNoLimits(t *testing.T) {
	var log bytes.Buffer
	a := newAttemptService(t)
	a.cfg.log = slog.New(slog.NewTextHandler(&log, nil))
	var failed []Event
	a.cfg.hooks = []Hooks{{OnEvent: func(_ context.Context, e Event) { failed = append(failed, e) }}}
	o := outbox.Outgoing{Kind: KindResetPassword, To: "ada@example.com"}
	for name, permit := range map[string]sendPermit{"none": {}, "of another kind": permitFor(KindMagicLink, o.To), "to another": permitFor(o.Kind, "eve@example.com")} {
		log.Reset()
		failed = nil
		if o.Permit = permit; a.maySend(t.Context(), o, User{ID: "ada"}) {
			t.Errorf("%s: sent", name)
		}
		if len(failed) != 1 || failed[0].Type != EventMessageFailed || failed[0].UserID != "ada" || failed[0].Message != KindResetPassword || log.Len() == 0 {
			t.Errorf("%s: told %+v, %s", name, failed, log.String())
		}
	}
	if o.Permit = permitFor(o.Kind, o.To); !a.maySend(t.Context(), o, User{}) {
		t.Error("not sent with its permit")
	}
	defer func() {
		if recover() == nil {
			t.Error("an account without a permit")
		}
	}()
	a.newUser(t.Context(), accountPermit{}, User{ID: "ada"})
}

// A refund is accepted, even if an earlier rate was stricter.
func TestNothingKeepsARefundOut(t *testing.T) {
	now := time.Unix(1767323045, 0)
	r := Rate{Burst: 2, Per: 2 * time.Second}
	if next, ok, _, _ := r.Apply(store.Bucket{Full: now.Add(10 * time.Second)}, now, -1); !ok || !next.Full.Equal(now.Add(9*time.Second)) {
		t.Errorf("%v %t", next, ok)
	}
}
