package auth

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/wire"
)

// Forms of pages that the application draws, where cookies are on: the endpoints
// of sign-ins take them like JSON, with these fields besides their own.
const (
	fieldReturnTo   = "return_to"   // where the browser goes once it is done
	fieldRedirectTo = "redirect_to" // likewise, unless the endpoint has such a field of its own
	fieldRemember   = "remember"    // a box: without it the browser forgets the session when it is closed
	fieldAPIKey     = "apikey"      // forms cannot send headers
)

// postedForm is a form, and what it says besides the endpoint's own fields.
type postedForm struct {
	values   url.Values // each name once, but for boxes
	returnTo string
	remember *bool // nil: there is no such box, or it is not ticked
}

// readPosted reads a form as strictly as JSON. The names given are of several boxes.
func readPosted(r *http.Request, boxes ...string) (*postedForm, error) {
	values, err := wire.ReadForm(r)
	if err == nil {
		err = wire.CheckForm(values, boxes...)
	}
	if err != nil {
		return nil, formFailed(err)
	}
	f := &postedForm{values: values, returnTo: values.Get(fieldReturnTo)}
	if f.remember, err = said(values); err != nil {
		return nil, formFailed(err)
	}
	return f, nil
}

// said is what a form or a query says of keeping the cookies; nil if nothing.
func said(values url.Values) (*bool, error) {
	if !values.Has(fieldRemember) {
		return nil, nil
	}
	on, err := wire.Checked(values, fieldRemember)
	return &on, err
}

// saidOf is what a request says that begins a sign-in which ends elsewhere: JSON by
// its field, and a form by its box, which is not sent unless it is ticked.
func saidOf(ctx context.Context, field *bool) *bool {
	if t := transportOf(ctx); t != nil && t.form != nil && field == nil {
		return new(bool)
	}
	return field
}

// formFailed is bodyFailed for forms.
func formFailed(err error) error {
	if err == nil {
		return nil
	}
	e := fail(CodeBadJSON, err)
	e.Message = "The form is not the one expected here: " + err.Error() + "."
	return e
}

// decode reads the endpoint's own fields into the struct that v points to.
func (f *postedForm) decode(v any) error {
	return formFailed(wire.FillForm(f.values, v, append(captchaFields(), fieldReturnTo, fieldRedirectTo, fieldRemember, fieldAPIKey)...))
}

// checkReturns refuses a form that would lead elsewhere, before it has an effect.
func (a *Auth) checkReturns(rt route, f *postedForm) error {
	if err := a.CheckReturn(f.returnTo); err != nil {
		return err
	}
	if rt.done != doneSent { // there redirect_to is the link's
		return a.CheckReturn(f.values.Get(fieldRedirectTo))
	}
	return nil
}

// CheckReturn tells whether a browser may be sent on to target after a sign-in:
// nil for a path of this very origin ("/notes?page=2"), for an address on the list
// of [WithRedirectURLs], and for none. Otherwise CodeRedirectNotAllowed; so it is
// for whatever browsers read in two ways, such as "//host" or "/\host".
func (a *Auth) CheckReturn(target string) error {
	if redirect.IsLocal(target) {
		return nil
	}
	return a.allowRedirect(target)
}

// Pages that end a form's post without anywhere to go: what they say.
const (
	doneSignedIn  = "signed_in"
	doneSignedOut = "signed_out"
	doneSent      = "sent"
)

// answerForm calls the handler of a form and turns what it answers into what a
// browser can use: the page to go on to, else a page that says what has happened,
// else, where nobody asks for a page by name, the handler's JSON.
func (a *Auth) answerForm(rt route, w http.ResponseWriter, r *http.Request) error {
	f, out := transportOf(r.Context()).form, &heldResponse{header: w.Header()}
	if err := rt.handle(out, r); err != nil {
		return err
	}
	signedIn := transportOf(r.Context()).carried
	to := f.returnTo
	if rt.done != doneSent || signedIn {
		to = cmp.Or(to, f.values.Get(fieldRedirectTo))
	}
	switch {
	case out.status >= http.StatusMultipleChoices: // the handler knows where to go
	case to != "":
		w.Header().Del("Content-Type")
		return seeOther(w, to)
	case acceptsByName(r, "text/html"):
		done := rt.done
		if signedIn {
			done = doneSignedIn
		}
		return a.showDone(w, r, page{Done: done}, "")
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body.Bytes()) // a client that has gone needs no answer
	return nil
}

// heldResponse keeps what a handler writes; its headers are the response's.
type heldResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *heldResponse) Header() http.Header { return h.header }

func (h *heldResponse) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *heldResponse) Write(b []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(b)
}
