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

// In cookie mode, the sign-in endpoints also accept forms of the application's own pages.
// They have these fields in addition to those of the JSON.
const (
	fieldReturnTo   = "return_to"   // the page to which the browser goes afterwards
	fieldRedirectTo = "redirect_to" // the same, unless the endpoint has a field of that name
	fieldRemember   = "remember"    // a checkbox: without it the browser drops the session when it is closed
	fieldAPIKey     = "apikey"      // forms cannot send headers
)

// postedForm is a form with its additional fields.
type postedForm struct {
	values   url.Values // each name once, except checkboxes
	returnTo string
	remember *bool // nil: no such checkbox, or not ticked
}

// readPosted reads a form as strictly as JSON. boxes name groups of checkboxes.
func readPosted(r *http.Request, boxes ...string) (*postedForm, error) {
	values, err := wire.ReadForm(r)
	if err == nil {
		err = wire.CheckForm(values, boxes...)
	}
	if err != nil {
		return nil, formFailed(err)
	}
	f := &postedForm{values: values, returnTo: values.Get(fieldReturnTo)}
	if f.remember, err = rememberField(values); err != nil {
		return nil, formFailed(err)
	}
	return f, nil
}

// rememberField returns the remember field of a form or query; nil if there is none.
func rememberField(values url.Values) (*bool, error) {
	if !values.Has(fieldRemember) {
		return nil, nil
	}
	on, err := wire.Checked(values, fieldRemember)
	return &on, err
}

// rememberChoice returns the remember choice of a request that starts a sign-in which
// ends elsewhere: the field in JSON, the checkbox in a form. A form without the
// field means false, because browsers send only ticked checkboxes.
func rememberChoice(ctx context.Context, field *bool) *bool {
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
	e.Message = "The form does not have the expected fields: " + err.Error() + "."
	return e
}

// decode reads the endpoint's own fields into the struct that v points to.
func (f *postedForm) decode(v any) error {
	return formFailed(wire.FillForm(f.values, v, append(captchaFields(), fieldReturnTo, fieldRedirectTo, fieldRemember, fieldAPIKey)...))
}

// checkReturns refuses a form with a forbidden redirect target, before it has effects.
func (a *Auth) checkReturns(rt route, f *postedForm) error {
	if err := a.CheckReturn(f.returnTo); err != nil {
		return err
	}
	if rt.done != doneSent { // with doneSent the endpoint checks redirect_to for its link
		return a.CheckReturn(f.values.Get(fieldRedirectTo))
	}
	return nil
}

// CheckReturn reports whether a browser may be redirected to target after a sign-in.
// It returns nil for a path of this origin ("/notes?page=2"), a URL on the list of
// [WithRedirectURLs], and "". Otherwise it returns CodeRedirectNotAllowed, also for
// targets that browsers read in two ways, such as "//host" or "/\host".
func (a *Auth) CheckReturn(target string) error {
	if redirect.IsLocal(target) {
		return nil
	}
	return a.allowRedirect(target)
}

// The messages of the page shown after a form that has no redirect target.
const (
	doneSignedIn  = "signed_in"
	doneSignedOut = "signed_out"
	doneSent      = "sent"
)

// answerForm calls the handler of a form and turns its response into one for
// browsers: a redirect to the next page, otherwise a page with the result.
// Without a next page, a request that does not accept HTML by name gets the handler's
// JSON.
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
	case out.status >= http.StatusMultipleChoices: // the handler has set a redirect
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
	_, _ = w.Write(out.body.Bytes()) // the client may have disconnected
	return nil
}

// heldResponse buffers a handler's response. Its headers are the response's.
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
