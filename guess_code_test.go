package auth_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// freely lets messages be asked for without limits.
var freely = auth.WithRateLimits(auth.RateLimits{SendGap: auth.Rate{Burst: -1}, SendPerAddress: auth.Rate{Burst: -1}, SendPerIP: auth.Rate{Burst: -1}})

// askCode asks for a code and returns it with the id of the request.
func (w *world) askCode(phone string) (code, request string) {
	w.t.Helper()
	w.Inbox.Clear()
	request = w.requestCode(map[string]any{"phone": phone})
	return w.Mail(w.t, phone, auth.KindPhoneCode).Code, request
}

func (w *world) requestCode(body map[string]any) string {
	w.t.Helper()
	return decodeAs[struct {
		ID string `json:"request_id"`
	}](w.do("POST", "/otp/send", body).want(200)).ID
}

func (w *world) otpOf(phone, code, request string, h ...header) *answer {
	w.t.Helper()
	return w.do("POST", "/otp/verify", map[string]any{"phone": phone, "otp": code, "request_id": request}, h...)
}

// Enumeration: twelve wrong codes are answered alike for a number with an account,
// one without, one that gets no account, and one that no code was sent to.
func TestWrongCodesAreAlike(t *testing.T) {
	w := newWorld(t, freely)
	const known = "+4930111111"
	code, _ := w.askCode(known)
	w.otp(known, code).want(200)
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
			request = w.requestCode(c.body)
			if request == "" || len(request) != 54 {
				t.Errorf("%s: request id %q", name, request)
			}
		}
		for range 12 {
			answers[name] = append(answers[name], w.otp(c.phone, "wrong").status)
		}
	}
	want := append(slices.Repeat([]int{400}, 5), slices.Repeat([]int{429}, 7)...)
	for name, got := range answers {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Nobody's guesses lock the owner out who shows the id of the request; the id
// gives its holder five tries, and no more with another code.
func TestRequestsHaveTriesOfTheirOwn(t *testing.T) {
	w := newWorld(t, freely)
	for range 2 { // ten in all, at two codes
		w.askCode(number)
		for range 5 {
			w.otp(number, "wrong").want(400, auth.CodeInvalidCode)
		}
	}
	code, request := w.askCode(number)
	w.otp(number, code).want(429, auth.CodeRateLimited)
	for _, stranger := range []string{"", "x", request + "=", request[:53] + "_" + "A", w.requestCode(map[string]any{"phone": "+4930777777"}), strings.Repeat("A", 54)} {
		w.otpOf(number, code, stranger).want(429, auth.CodeRateLimited)
	}
	elsewhere := header{"RemoteAddr", "198.51.100.9:1234"}
	for range 5 {
		w.otpOf(number, other(code), request).want(400, auth.CodeInvalidCode)
	}
	w.otpOf(number, code, request).want(429, auth.CodeRateLimited)
	w.otpOf(number, code, request, elsewhere).want(429, auth.CodeRateLimited) // five in all, from wherever
	code, request = w.askCode(number)
	w.otpOf(number, code, request, elsewhere).want(200)

	// An id is good as long as its code.
	code, request = w.askCode(number)
	w.Clock.Advance(5 * time.Minute)
	w.otpOf(number, code, request).want(429, auth.CodeRateLimited)
}

// However codes are sent and guessed: ten wrong ones an hour and thirty a day, for
// a number without the ids of requests, and with them for each client.
func TestWrongCodesADay(t *testing.T) {
	for name, shown := range map[string]bool{"a number": false, "a client with ids": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, freely)
			hour, day := 0, 0
			for h := range 24 {
				for range 10 {
					code, request := w.askCode(number)
					if !shown {
						request = ""
					}
					for range 5 {
						_, err := w.VerifyPhoneCode(on(t.Context(), ""), auth.VerifyPhoneCodeParams{Phone: number, Code: other(code), RequestID: request})
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
			// Buckets fill up again while they are drawn from.
			if hour != 10 || day > 60 {
				t.Errorf("%d in an hour, %d in a day", hour, day)
			}
		})
	}
}
