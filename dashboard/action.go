package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
)

// action is a form that runs one operation. It has its own page, which the script opens
// as a dialog.
type action struct {
	at           string // path below the prefix, without the method
	operation    string // operation
	title        string
	text         string // explains the result
	submit       string
	danger       bool
	fields       func(*visit) ([]field, error)       // with their present values
	confirmation func(*visit) (string, error)        // text that the visitor types to confirm; nil: none
	do           func(*visit) (any, error)           // calls the operation
	done         string                              // notice after success
	back         func(*visit) string                 // page to continue at
	show         func(*visit, object) (*page, error) // page shown once instead of the notice
	boxes        []string                            // names of fields with several boxes
	preview      func(*visit, *page) error           // adds the affected records to the page
	noDialog     bool                                // no dialog, because the form is large
	noCurl       bool                                // no curl example: the form does more than the operation, or keys may not call it
}

// actionRoutes are the routes of all actions.
func actionRoutes() []route {
	var list []route
	for _, a := range slices.Concat(userActions(), accessActions(), sessionActions(), roleActions(), invitationActions(), messageActions(), keyActions(), settingsActions()) {
		list = append(list, route{at: a.at, operation: a.operation, form: &a})
	}
	return list
}

// runAction shows the form, or runs the posted one.
func (v *visit) runAction() error {
	a := v.rt.form
	if v.r.Method != http.MethodPost {
		p, err := v.actionPage(nil)
		if err != nil {
			return err
		}
		v.render(http.StatusOK, p)
		return nil
	}
	out, err := v.runOperation(a)
	if err != nil {
		if errors.Is(err, auth.CodeReauthNeeded) || errors.Is(err, auth.CodeInsufficientAAL) || errors.Is(err, auth.CodeSessionEnded) {
			return err
		}
		e := host.As[*auth.Error](v.d.kit.WriteError(v.w, v.r, err))
		p, again := v.actionPage(e)
		if again != nil {
			return err
		}
		v.render(e.Status, p)
		return nil
	}
	if a.show != nil {
		p, err := a.show(v, out)
		if v.redirected {
			return err
		}
		if err == nil && p != nil {
			v.render(http.StatusOK, p)
		}
		if err != nil || p != nil {
			return err
		}
	}
	v.setNotice(v.t(a.done))
	v.redirect(a.back(v))
	return nil
}

// runOperation calls the operation.
func (v *visit) runOperation(a *action) (object, error) {
	if a.confirmation != nil {
		want, err := a.confirmation(v)
		if err != nil {
			return nil, err
		}
		if !strings.EqualFold(strings.TrimSpace(v.form.Get("typed")), want) {
			return nil, v.d.kit.Invalid("typed", "has to be "+want)
		}
	}
	return v.shown(a.do(v))
}

// wirePath returns the operation's path, filled in from the path of this page.
func (v *visit) wirePath(a *action) string {
	_, path, _ := strings.Cut(a.operation, " ")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parts[i] = url.PathEscape(v.r.PathValue(strings.TrimSuffix(name, "}")))
		}
	}
	return strings.Join(parts, "/")
}

// formValue returns the text that was entered into a field.
func (v *visit) formValue(name string) string { return strings.TrimSpace(v.form.Get(name)) }

// isChecked reports whether a checkbox was checked.
func (v *visit) isChecked(name string) bool { return v.formValue(name) != "" }

// formValues returns the checked boxes with a name, or the words that were entered.
func (v *visit) formValues(name string) []string {
	list := []string{}
	for _, text := range v.form[name] {
		list = append(list, strings.Fields(strings.ReplaceAll(text, ",", " "))...)
	}
	return list
}

// formNumber returns the number that was entered, or 0.
func (v *visit) formNumber(name string) (int, error) {
	if !v.isChecked(name) {
		return 0, nil
	}
	n, err := strconv.Atoi(v.formValue(name))
	if err != nil {
		return n, v.d.kit.Invalid(name, "has to be a number")
	}
	return n, nil
}

// formTime returns the time that was entered, in UTC, or the zero time.
func (v *visit) formTime(name string) (time.Time, error) {
	if !v.isChecked(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse("2006-01-02T15:04", v.formValue(name))
	if err != nil {
		return t, v.d.kit.Invalid(name, "has to be a time such as 2026-01-02T15:04")
	}
	return t, nil
}

// revision returns the revision that the form was shown with, or nil if it has none.
func (v *visit) revision() *int64 {
	text := v.form.Get("revision")
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = -1 // never a present revision
	}
	return &n
}

// actionPage returns the form with the entered values and their errors.
func (v *visit) actionPage(failed *auth.Error) (*page, error) {
	a := v.rt.form
	f := &form{To: v.r.URL.RequestURI(), Method: "post", Submit: v.t(a.submit), Danger: a.danger, Back: a.back(v)}
	if a.fields != nil {
		var err error
		if f.Fields, err = a.fields(v); err != nil {
			return nil, err
		}
	}
	f.Fields = slices.Clone(f.Fields)
	if a.confirmation != nil {
		want, err := a.confirmation(v)
		if err != nil {
			return nil, err
		}
		f.Fields = append(f.Fields, field{Name: "typed", Type: "typed", Label: v.t("Type {what} to continue", "what", want), Required: true})
	}
	f.Fields, f.Hidden = split(f.Fields)
	if v.form != nil {
		for i := range f.Hidden { // keep the revision that the visitor saw
			if h := &f.Hidden[i]; v.form.Has(h.Name) {
				h.Value = v.form.Get(h.Name)
			}
		}
		for i := range f.Fields {
			f.Fields[i].entered(v.form)
		}
	}
	if failed != nil {
		f.Problem = v.problemText(failed)
		for i := range f.Fields {
			f.Fields[i].Error = failed.Fields[f.Fields[i].Name]
		}
	}
	f.Curl = v.curl(a, slices.Concat(f.Fields, f.Hidden))
	p := &page{Title: v.t(a.title), Blocks: []block{{Form: f}}}
	if failed != nil && failed.Code == auth.CodePreconditionFailed {
		p.Blocks[0].Link = &link{Text: v.t("Show the current state"), To: v.r.URL.RequestURI()}
	}
	if a.text != "" {
		p.Blocks[0].Text = v.t(a.text)
	}
	if strings.HasPrefix(a.at, "/users/{id}/") && v.may("GET /users/{id}") {
		u, err := v.account()
		if err != nil {
			return nil, err
		}
		p.Under = u.label()
	}
	if a.preview != nil {
		return p, a.preview(v, p)
	}
	return p, nil
}

// split separates the hidden fields from the others.
func split(all []field) (shown, hidden []field) {
	for _, f := range all {
		if f.Type == "hidden" {
			hidden = append(hidden, f)
		} else {
			shown = append(shown, f)
		}
	}
	return shown, hidden
}

// entered replaces the field's value by the posted one.
func (f *field) entered(posted url.Values) {
	switch f.Type {
	case "password", "typed":
	case "check":
		f.Checked = posted.Get(f.Name) != ""
	case "checks", "select":
		f.Options = slices.Clone(f.Options)
		for i := range f.Options {
			f.Options[i].Chosen = slices.Contains(posted[f.Name], f.Options[i].Value)
		}
	default:
		f.Value = posted.Get(f.Name)
	}
}

// curl returns the curl command that calls the operation.
func (v *visit) curl(a *action, fields []field) string {
	if a.operation == "" || a.noCurl {
		return ""
	}
	method, _, _ := strings.Cut(a.operation, " ")
	var b strings.Builder
	fmt.Fprintf(&b, "curl -X %s '%s/admin%s' \\\n  -H \"Authorization: Bearer $SECRET_KEY\"", method, v.d.kit.Site().Mount, v.wirePath(a))
	sample := map[string]any{}
	for _, f := range fields {
		switch f.Type {
		case "typed":
		case "hidden":
			if f.Name == "address" { // a revision is a header, and a token a secret
				sample[f.Name] = f.Value
			}
		case "check":
			sample[f.Name] = f.Checked
		case "checks", "lines":
			sample[f.Name] = []string{}
		default:
			sample[f.Name] = "…"
		}
	}
	if len(sample) > 0 {
		fmt.Fprintf(&b, " \\\n  -H 'Content-Type: application/json' \\\n  -d '%s'", compact(sample))
	}
	return b.String()
}

// to returns a link to an action, or the reason why the visitor may not use it.
func (v *visit) to(text, operation, below string, danger bool) link {
	l := link{Text: v.t(text), Danger: danger}
	if v.may(operation) {
		l.To = v.path(below)
		return l
	}
	l.Reason = v.problemText(v.me.May(operation))
	return l
}

func reasonField(v *visit, required bool) field {
	return field{Name: "reason", Label: v.t("Reason"), Type: "text", Required: required, Hint: v.t("It is recorded in the audit log.")}
}
