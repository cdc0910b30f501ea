package auth

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

// exportPage is the number of events that an export reads at a time.
const exportPage = 500

// ExportParams are the parameters of Export.
type ExportParams struct{ Caller }

// Export is all data about a user, without secrets. Factors and events are empty if
// the store does not keep them, and Passkeys without WithPasskeys.
type Export struct {
	At          time.Time
	User        User
	HasPassword bool
	Sessions    []SessionInfo // live ones
	Factors     []Factor      // without their secrets
	CodesLeft   int           // recovery codes
	Passkeys    []PasskeyRecord
	UserRecords

	events func(ctx context.Context, before *Event) ([]Event, error) // the next page of the user's events
	first  []Event
}

// Export reads all data about the caller, who must have signed in recently. It is all
// read while the session is live. Export.Write reads the events, because there may be
// many. Errors: CodeReauthNeeded, CodeSessionEnded, CodeUserBanned.
func (a *Auth) Export(ctx context.Context, p ExportParams) (*Export, error) {
	if _, err := a.actingLately(ctx, p.Caller); err != nil {
		return nil, err
	}
	e, err := a.exportOf(ctx, SessionsParams{UserID: p.UserID, Current: p.SessionID}, CodeSessionEnded)
	if err != nil {
		return nil, err
	}
	// Later pages are older than this one, so their events existed before this check.
	if _, err := a.actingLately(ctx, p.Caller); err != nil {
		return nil, err
	}
	return e, nil
}

// exportOf reads all data about a user. gone is the error for an unknown user.
func (a *Auth) exportOf(ctx context.Context, p SessionsParams, gone Code) (*Export, error) {
	c, err := a.store.Credentials(ctx, store.ByID(p.UserID))
	if err != nil {
		return nil, goneOr(gone, err)
	}
	e := &Export{At: a.now(), User: c.User, HasPassword: c.PasswordHash != ""}
	if e.Sessions, err = a.Sessions(ctx, p); err != nil {
		return nil, err
	}
	if err := a.exportMore(ctx, e); err != nil {
		return nil, storeFailed(err)
	}
	return e, nil
}

// exportMore reads the data that depends on the store's interfaces, and UserRecords.
func (a *Auth) exportMore(ctx context.Context, e *Export) (err error) {
	if a.factors != nil {
		f, err := a.factors.Factors(ctx, e.User.ID)
		if err != nil {
			return err
		}
		if e.Passkeys, err = a.passkeyRecords(f.List); err != nil {
			return err
		}
		e.Factors, e.CodesLeft = f.List, f.RecoveryLeft
		for i := range e.Factors {
			e.Factors[i].Secret, e.Factors[i].State = nil, nil
		}
	}
	if e.UserRecords, err = a.store.UserRecords(ctx, e.User.ID, a.now()); err != nil {
		return err
	}
	if s := a.journal; s != nil {
		e.events = func(ctx context.Context, before *Event) ([]Event, error) {
			return s.Events(ctx, store.EventQuery{UserID: e.User.ID, Before: before, Limit: exportPage})
		}
		e.first, err = e.events(ctx, nil)
	}
	return err
}

// Write writes the export as one JSON object. It returns an error of the writer or the
// store; the object written so far is then incomplete.
func (e *Export) Write(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriter(w)
	head, err := json.Marshal(e.view())
	if err != nil {
		return err
	}
	_, _ = out.Write(head[:len(head)-1]) // Flush returns the error
	_, _ = out.WriteString(`,"events":[`)
	sep := ""
	for page := e.first; len(page) > 0; {
		for _, event := range page {
			line, err := json.Marshal(e.redactEvent(event))
			if err != nil {
				return err
			}
			_, _ = out.WriteString(sep)
			_, _ = out.Write(line)
			sep = ","
		}
		if len(page) < exportPage {
			break
		}
		if page, err = e.events(ctx, &page[len(page)-1]); err != nil {
			return storeFailed(err)
		}
	}
	_, _ = out.WriteString("]}\n")
	return out.Flush()
}

// redactEvent removes the data about other people from an event: the actor, their
// client and name, and operators' notes.
func (e *Export) redactEvent(event Event) Event {
	if event.Record = event.Record.Clone(); event.Record != nil {
		event.Record.Actor = ""
		delete(event.Record.Changes, "notes")
	}
	if event.Actor.ID != e.User.ID && event.Actor.Kind != store.ActorSystem && event.Actor.Kind != "" {
		event.Actor, event.Client = Actor{Kind: event.Actor.Kind}, Client{}
	}
	return event
}

type (
	exportView struct {
		ExportedAt  time.Time       `json:"exported_at"`
		User        UserView        `json:"user"`
		HasPassword bool            `json:"has_password"`
		Sessions    []SessionInfo   `json:"sessions"`
		Factors     []factorView    `json:"factors"`
		CodesLeft   int             `json:"recovery_codes_left"`
		UserHandle  *string         `json:"user_handle"`
		Passkeys    []PasskeyRecord `json:"passkeys"`
		Devices     []deviceView    `json:"devices"`
		Pending     []heldView      `json:"pending"`
		Messages    []heldOnlyView  `json:"messages"`
	}
	factorView struct {
		ID         string     `json:"id"`
		Kind       string     `json:"kind"`
		Label      *string    `json:"label"`
		Enabled    bool       `json:"enabled"`
		CreatedAt  time.Time  `json:"created_at"`
		LastUsedAt *time.Time `json:"last_used_at"`
	}
	deviceView struct {
		FirstSeenAt time.Time `json:"first_seen_at"`
		LastSeenAt  time.Time `json:"last_seen_at"`
	}
	heldOnlyView struct {
		CreatedAt time.Time `json:"created_at"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	heldView struct {
		Purpose store.Purpose `json:"purpose"`
		heldOnlyView
	}
)

func (e *Export) view() exportView {
	v := exportView{
		ExportedAt: wireTime(e.At), User: ViewOf(e.User), HasPassword: e.HasPassword, Sessions: nonNil(e.Sessions), CodesLeft: e.CodesLeft,
		UserHandle: optional(e.User.Handle), Passkeys: nonNil(e.Passkeys),
		Factors: []factorView{}, Devices: []deviceView{}, Pending: []heldView{}, Messages: []heldOnlyView{},
	}
	for _, f := range e.Factors {
		v.Factors = append(v.Factors, factorView{f.ID, f.Kind, optional(f.Label), f.Enabled, wireTime(f.CreatedAt), optionalTime(f.LastUsedAt)})
	}
	for _, d := range e.Devices {
		v.Devices = append(v.Devices, deviceView{wireTime(d.FirstSeenAt), wireTime(d.LastSeenAt)})
	}
	for _, t := range e.Pending {
		v.Pending = append(v.Pending, heldView{t.Purpose, heldOnlyView{wireTime(t.CreatedAt), wireTime(t.ExpiresAt)}})
	}
	for _, m := range e.Messages {
		v.Messages = append(v.Messages, heldOnlyView{wireTime(m.CreatedAt), wireTime(m.ExpiresAt)})
	}
	return v
}

// handleExport is GET /me/export.
func (a *Auth) handleExport(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Export(r.Context(), ExportParams{currentFrom(r.Context()).caller()})
	if err != nil {
		return err
	}
	return a.writeExport(w, r, e)
}

// writeExport responds with an export. An error after the start of the response cuts
// it short, so that the client notices that it is incomplete.
func (a *Auth) writeExport(w http.ResponseWriter, r *http.Request, e *Export) error {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", `attachment; filename="account.json"`)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := e.Write(r.Context(), w); err != nil {
		a.cfg.log.WarnContext(r.Context(), "auth: export cut short", "user_id", e.User.ID, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
