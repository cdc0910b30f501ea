package harness

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/authmount/auth"
)

func (w *World) MagicLink(email string, more map[string]any) string {
	w.T.Helper()
	body := map[string]any{"email": email}
	for k, v := range more {
		body[k] = v
	}
	w.Do("POST", "/magic-link/send", body).Want(200)
	return w.LinkToken(email, auth.KindMagicLink)
}

// BoundToBrowser returns parameters for a link that only the holder of Verifier can use.
func BoundToBrowser() map[string]any {
	return map[string]any{"redirect_to": AppURL, "code_challenge": ChallengeOf(Verifier), "code_challenge_method": "S256"}
}

// Opened opens a magic link and returns the code of its redirect.
func (w *World) Opened(token string) string {
	w.T.Helper()
	return w.CodeOf(w.Do("POST", "/magic-link/verify", "token="+token, Form, Browser))
}

func (w *World) CodeOf(a *Answer) string {
	w.T.Helper()
	return a.Want(303).Location().Query().Get("code")
}

func (w *World) PostExchange(code, verifier string) *Answer {
	w.T.Helper()
	return w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier})
}

// Mailed is the credentials of a person who requested a link.
type Mailed struct {
	Code, Token, Request string
}

// AskByMail requests a magic link and reads the newest message.
func (w *World) AskByMail(email string, more map[string]any) Mailed {
	w.T.Helper()
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	body := map[string]any{"email": email}
	for k, v := range more {
		body[k] = v
	}
	a := w.Do("POST", "/magic-link/send", body).Want(200)
	m := w.NewMail(email, auth.KindMagicLink, seen)
	return Mailed{m.Code, TokenIn(w.T, m.Link), DecodeAs[struct {
		ID string `json:"request_id"`
	}](a).ID}
}

// NewMail waits for a message that is not in seen.
func (w *World) NewMail(to string, k auth.Kind, seen map[string]bool) auth.Message {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == k && m.To == to && !seen[m.ID] })
	if err != nil {
		w.T.Fatal(err)
	}
	return m
}

// ByCode signs in with a mailed code.
func (w *World) ByCode(email, code, request string, more map[string]any, h ...Header) *Answer {
	w.T.Helper()
	body := map[string]any{"email": email, "code": code, "request_id": request}
	for k, v := range more {
		body[k] = v
	}
	return w.Do("POST", "/magic-link/verify", body, h...)
}

const AdaMail = "ada@example.com"

var NoLimit = auth.Rate{Burst: -1}

// TokenIn returns the token of a link.
func TokenIn(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("token")
}

// NoMail is a mailer that sends nothing.
type NoMail struct{}

func (NoMail) Send(context.Context, auth.Message) error { return nil }

// EventTypes returns the constants of store/event.go.
func EventTypes(t *testing.T) (list []auth.EventType) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(Root(t), "store", "event.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "EventType" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, auth.EventType(value))
		return true
	})
	return list
}

// Sent closes the service and returns the kinds of messages that it sent to a recipient.
func (w *World) Sent(to string) (list []auth.Kind) {
	w.T.Helper()
	if err := w.Close(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
	for _, m := range w.Inbox.Messages() {
		if m.To == to {
			list = append(list, m.Kind)
		}
	}
	return list
}

// FromAddress is a client with its own IP address, so that IP limits do not apply first.
func FromAddress(i int) Header { return Header{"RemoteAddr", fmt.Sprintf("198.51.100.%d:1", i)} }

// VerifyBy verifies an email address with a code.
func (w *World) VerifyBy(email, code string, h ...Header) *Answer {
	w.T.Helper()
	return w.Do("POST", "/verify-email", map[string]any{"email": email, "code": code}, h...)
}

// MailsSeen returns the ids of the present messages.
func (w *World) MailsSeen() map[string]bool {
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	return seen
}
