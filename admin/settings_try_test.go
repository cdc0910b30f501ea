package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// senderFunc is a Mailer or SMSSender.
type senderFunc func(context.Context, auth.Message) error

func (f senderFunc) Send(ctx context.Context, m auth.Message) error { return f(ctx, m) }

// A test message goes to the actor alone, reports the sender's answer, and counts against
// the limits of every message.
func TestSettingsTryMessages(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		var mu sync.Mutex
		var broken error
		var got []auth.Message
		send := senderFunc(func(_ context.Context, m auth.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if broken == nil {
				got = append(got, m)
			}
			return broken
		})
		o := newOffice(t, store, auth.WithMailer(send), auth.WithSMSSender(send))
		owner := o.owner()
		o.do(owner, "POST /settings/test-sms", "").want(422, auth.CodeValidationFailed) // no phone number
		if a := o.do(owner, "POST /settings/test-mail", "").want(200); a.body["ok"] != true || a.body["queued"] != false {
			t.Errorf("%v", a.body)
		}
		o.do(owner, "POST /settings/test-mail", "").want(429, auth.CodeRateLimited)
		o.hasPhone(owner, "+4930123456")
		o.do(owner, "POST /settings/test-sms", "").want(200)
		o.do(owner, "POST /settings/test-sms", "").want(429, auth.CodeRateLimited)
		_, err := o.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: "+4930123456"})
		wantCode(t, err, auth.CodeRateLimited) // a test uses up the limit of a code
		mu.Lock()
		list := slices.Clone(got)
		mu.Unlock()
		var to []string
		for _, m := range list {
			if m.Kind == auth.KindTestMail || m.Kind == auth.KindTestSMS {
				to = append(to, m.To)
			}
		}
		if !slices.Equal(to, []string{"owner@example.com", "+4930123456"}) {
			t.Errorf("sent to %v", to)
		}
		o.Clock.Advance(2 * time.Minute)
		mu.Lock()
		broken = auth.Permanent(errors.New("535 authentication failed for owner@example.com"))
		mu.Unlock()
		a := o.do(o.renewed(owner), "POST /settings/test-mail", "").want(200)
		if detail, _ := a.body["detail"].(string); a.body["ok"] != false || !strings.Contains(detail, "535 authentication failed") {
			t.Errorf("%v", a.body)
		}
		o.unprove(owner)
		o.do(o.renewed(owner), "POST /settings/test-mail", "").want(422, auth.CodeValidationFailed) // it may be a stranger's
		_, err = o.adm.TryMail(t.Context(), admin.System("test").Accepting())
		wantCode(t, err, auth.CodeValidationFailed)
	})
}

// A provider is asked again, and its answer is reported without a secret.
func TestSettingsTryProvider(t *testing.T) {
	idp := authtest.StartProvider(t)
	broken := idp.OIDC("broken")
	broken.Issuer += "/nowhere"
	broken.ClientSecret = "a-very-secret-thing"
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithProvider(broken, idp.GitHub()))
		owner := o.owner()
		for name, ok := range map[string]bool{theProvider: true, "github": true, "broken": false} {
			a := o.do(owner, "POST /settings/test-provider/"+name, "").want(200)
			if a.body["ok"] != ok || a.body["detail"] == "" || strings.Contains(fmt.Sprint(a.body), "a-very-secret-thing") {
				t.Errorf("%s: %v", name, a.body)
			}
		}
		o.do(owner, "POST /settings/test-provider/none", "").want(404, auth.CodeUnknownProvider)
	})
}
