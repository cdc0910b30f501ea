package authclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

const scenarioOrigin = "https://app.example.com"

// exchange is a request that a step expects, and its answer.
type exchange struct {
	Request struct {
		Method, Path string
		Body         json.RawMessage
		Any          []string
		Bearer       json.RawMessage
		Headers      map[string]*string
	}
	Answer struct {
		Status  int
		Headers map[string]string
		Body    json.RawMessage
		Lost    bool
	}
	Times int

	came int
}

// player is an http.RoundTripper that plays the answers of a step.
type player struct {
	clock *clock

	mu       sync.Mutex
	expected []*exchange
	problems []string
}

// expect starts a step.
func (p *player) expect(es []*exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected, p.problems = es, nil
}

// met returns the mistakes in the requests of the step.
func (p *player) met() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.problems
	for _, e := range p.expected {
		if e.came == 0 {
			out = append(out, e.Request.Method+" "+e.Request.Path+" did not come")
		}
	}
	return out
}

// RoundTrip implements http.RoundTripper.
func (p *player) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	path, ours := strings.CutPrefix(r.URL.String(), scenarioOrigin+"/auth/v1")
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	var e *exchange
	for _, x := range p.expected {
		var want string
		_ = json.Unmarshal(x.Request.Bearer, &want)
		if e == nil && ours && x.Request.Method == r.Method && x.Request.Path == path && x.came < max(1, x.Times) && (want == "" || want == bearer) {
			e = x
		}
	}
	if e == nil {
		p.problems = append(p.problems, fmt.Sprintf("unexpected: %s %s %s, bearer %q", r.Method, r.URL, sent, bearer))
		return nil, errors.New("no such answer")
	}
	e.came++
	if wrong := e.check(r, sent, bearer); wrong != "" {
		p.problems = append(p.problems, r.Method+" "+path+": "+wrong)
	}
	if e.Answer.Lost {
		return nil, io.ErrUnexpectedEOF
	}
	text := []byte(e.Answer.Body)
	var s string
	if json.Unmarshal(text, &s) == nil {
		text = []byte(s)
	}
	h := http.Header{"Content-Type": {"application/json"}, "Date": {p.clock.Now().UTC().Format(http.TimeFormat)}}
	for name, v := range e.Answer.Headers {
		h.Set(name, v)
	}
	return &http.Response{Status: strconv.Itoa(e.Answer.Status), StatusCode: e.Answer.Status, Header: h, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// check compares a request with the expected one.
func (e *exchange) check(r *http.Request, sent []byte, bearer string) string {
	if e.Request.Bearer != nil {
		var want string // null: none
		_ = json.Unmarshal(e.Request.Bearer, &want)
		if bearer != want {
			return fmt.Sprintf("bearer %q, not %q", bearer, want)
		}
	}
	for name, want := range e.Request.Headers {
		if got := r.Header.Get(name); got != orEmpty(want) {
			return fmt.Sprintf("header %s: %q", name, got)
		}
	}
	if e.Request.Body == nil {
		return ""
	}
	var got, want map[string]any
	if len(sent) > 0 && json.Unmarshal(sent, &got) != nil || json.Unmarshal(e.Request.Body, &want) != nil {
		return "the body is no object"
	}
	for _, name := range e.Request.Any {
		delete(got, name)
	}
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("body %v, not %v", got, want)
	}
	return ""
}

// scenarioTimers are the timers of a client, which follow the clock of a scenario.
type scenarioTimers struct {
	clock *clock

	mu     sync.Mutex
	timers map[int]scenarioTimer
	next   int
}

type scenarioTimer struct {
	at time.Time
	f  func()
}

func (s *scenarioTimers) after(d time.Duration, f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	id := s.next
	s.timers[id] = scenarioTimer{s.clock.Now().Add(d), f}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.timers, id)
	}
}

// advance moves the clock, and runs the timers that are due.
func (s *scenarioTimers) advance(d time.Duration) {
	s.clock.Advance(d)
	s.mu.Lock()
	timers := maps.Clone(s.timers)
	s.mu.Unlock()
	for id, t := range timers {
		if !t.at.After(s.clock.Now()) {
			s.mu.Lock()
			delete(s.timers, id)
			s.mu.Unlock()
			t.f()
		}
	}
}
