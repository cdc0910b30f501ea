package auth

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/token"
)

// Every default that the doc of an option names is the one there is.
func TestDefaultsAreAsDocumented(t *testing.T) {
	var mail MailOptions
	mail.defaults()
	var phone PhoneOptions
	if err := phone.check(); err != nil {
		t.Fatal(err)
	}
	sessions := SessionOptions{}.withDefaults()
	sessions.IdleTimeout = defaultSettings().IdleTimeout
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
	if docs := fieldDocs(t, "mail.go", "MailOptions"); !strings.Contains(docs["Attempts"], fmt.Sprintf("default %d (about four hours) with a store that keeps messages (OutboxStore), else %d", keptAttempts, mail.Attempts)) {
		t.Errorf("%d and %d tries: %s", keptAttempts, mail.Attempts, docs["Attempts"])
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

// fieldDocs is what is said of the fields of a struct.
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

// documentedDefault is the default that a doc names, as spelt spells it; "" if it
// names none.
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
