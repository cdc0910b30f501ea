package auth

import (
	"context"
	"errors"
	"net/http"

	"github.com/authmount/auth/store"
)

func (k kit) Export(ctx context.Context, userID string) (any, error) {
	return k.a.exportOf(ctx, SessionsParams{UserID: userID}, CodeUserNotFound)
}

func (k kit) Anonymize(ctx context.Context, c store.Change, u User, label string) (User, error) {
	s, ok := store.Capability[store.AnonymizeStore](k.a.store)
	if !ok {
		return User{}, fail(CodeInternal, errors.New("the store is no store.AnonymizeStore"))
	}
	p := store.AnonymizeUser{Change: c, UserID: u.ID, Label: label, Subjects: []string{u.ID}}
	if u.Email != "" {
		p.Names = append(p.Names, store.EmailKey(u.Email))
		p.Subjects = append(p.Subjects, store.EmailKey(u.Email), invitationID(u.Email))
		p.Recipients = append(p.Recipients, k.a.recipient(u.Email))
	}
	if u.Phone != "" {
		p.Subjects, p.Recipients = append(p.Subjects, u.Phone), append(p.Recipients, k.a.recipient(u.Phone))
	}
	if err := k.a.recorder.Flush(ctx); err != nil {
		return User{}, storeFailed(err)
	}
	return s.AnonymizeUser(ctx, p)
}

func (k kit) WriteExport(w http.ResponseWriter, r *http.Request, export any) error {
	return k.a.writeExport(w, r, export.(*Export))
}
