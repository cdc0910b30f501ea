package hostile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// freely removes the limits on requests for messages.
var freely = auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerAddress: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1}})

// Enumeration: twelve wrong codes are answered alike for a number with an account,
// one without, one that gets no account, and one that no code was sent to.
func TestWrongCodesAreAlike(t *testing.T) {
	w := harness.NewWorld(t, freely)
	const known = "+4930111111"
	code, _ := w.AskCode(known)
	w.PostOTP(known, code).Want(200)
	answers := map[string][]int{}
	for name, c := range map[string]struct {
		phone string
		body  map[string]any
	}{
		"known": {known, map[string]any{"phone": known}}, "unknown": {"+4930222222", map[string]any{"phone": "+4930222222"}},
		"known, no account wanted": {"+4930111112", map[string]any{"phone": "+4930111112", "create_user": false}},
		"no account wanted":        {"+4930333333", map[string]any{"phone": "+4930333333", "create_user": false}},
		"never sent":               {"+4930444444", nil},
	} {
		request := ""
		if c.body != nil {
			request = w.RequestCode(c.body)
			if request == "" || len(request) != 54 {
				t.Errorf("%s: request id %q", name, request)
			}
		}
		for range 12 {
			answers[name] = append(answers[name], w.PostOTP(c.phone, "wrong").Status)
		}
	}
	want := append(slices.Repeat([]int{400}, 5), slices.Repeat([]int{429}, 7)...)
	for name, got := range answers {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A stranger's attempts do not lock out the owner who presents the id of the request. The id
// allows five attempts, and no more with another code.
func TestRequestsHaveTriesOfTheirOwn(t *testing.T) {
	w := harness.NewWorld(t, freely)
	for range 2 { // ten in all, at two codes
		w.AskCode(harness.PhoneNumber)
		for range 5 {
			w.PostOTP(harness.PhoneNumber, "wrong").Want(400, auth.CodeInvalidCode)
		}
	}
	code, request := w.AskCode(harness.PhoneNumber)
	w.PostOTP(harness.PhoneNumber, code).Want(429, auth.CodeRateLimited)
	for _, stranger := range []string{"", "x", request + "=", request[:53] + "_" + "A", w.RequestCode(map[string]any{"phone": "+4930777777"}), strings.Repeat("A", 54)} {
		w.OTPOf(harness.PhoneNumber, code, stranger).Want(429, auth.CodeRateLimited)
	}
	elsewhere := harness.Header{Name: "RemoteAddr", Value: "198.51.100.9:1234"}
	for range 5 {
		w.OTPOf(harness.PhoneNumber, harness.OtherNumber(code), request).Want(400, auth.CodeInvalidCode)
	}
	w.OTPOf(harness.PhoneNumber, code, request).Want(429, auth.CodeRateLimited)
	w.OTPOf(harness.PhoneNumber, code, request, elsewhere).Want(429, auth.CodeRateLimited) // five in all, from wherever
	code, request = w.AskCode(harness.PhoneNumber)
	w.OTPOf(harness.PhoneNumber, code, request, elsewhere).Want(200)

	// An id is valid as long as its code.
	code, request = w.AskCode(harness.PhoneNumber)
	w.Clock.Advance(5 * time.Minute)
	w.OTPOf(harness.PhoneNumber, code, request).Want(429, auth.CodeRateLimited)
}

// Wrong codes are limited to ten an hour and thirty a day: for a phone number without
// request ids, and for each client with them.
func TestWrongCodesADay(t *testing.T) {
	for name, shown := range map[string]bool{"a number": false, "a client with ids": true} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, freely)
			hour, day := 0, 0
			for h := range 24 {
				for range 10 {
					code, request := w.AskCode(harness.PhoneNumber)
					if !shown {
						request = ""
					}
					for range 5 {
						_, err := w.VerifyPhoneCode(harness.OnDeviceContext(t.Context(), ""), auth.VerifyPhoneCodeParams{Phone: harness.PhoneNumber, Code: harness.OtherNumber(code), RequestID: request})
						if errors.Is(err, auth.CodeInvalidCode) {
							day++
						}
					}
				}
				if h == 0 {
					hour = day
				}
				w.Clock.Advance(time.Hour)
			}
			// Buckets refill while attempts are counted against them.
			if hour != 10 || day > 60 {
				t.Errorf("%d in an hour, %d in a day", hour, day)
			}
		})
	}
}
