package auth

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// Operators' actions on accounts. They follow the same rules as the owners' actions.

// passwordByOperator is the method of a PasswordChange by an operator.
const passwordByOperator = "operator"

// maxNotes bounds operators' notes about an account, in bytes.
const maxNotes = 16 << 10

func (k kit) Account(ctx context.Context, key store.UserKey) (host.Account, error) {
	c, held, err := k.a.store.Account(ctx, key, k.a.now())
	if err != nil {
		return host.Account{}, err
	}
	out := host.Account{Credentials: c}
	if k.a.factors != nil && (c.User.MFAEnabled || k.a.cfg.passkeys != nil) {
		if out.Factors, err = k.a.factors.Factors(ctx, c.User.ID); err != nil {
			return out, err
		}
		for i := range out.Factors.List {
			out.Factors.List[i].Secret = nil
		}
	}
	out.Pending = pendingChanges(c.User, held)
	out.Locks, err = k.a.locks(ctx, c.User, held)
	return out, err
}

// pendingChanges returns the email addresses and phone numbers that wait for
// verification.
func pendingChanges(u User, h UserRecords) []host.Pending {
	list := []host.Pending{}
	for _, t := range h.Pending {
		switch t.Purpose {
		case store.PurposeVerifyEmail:
			if d, err := readLink(t.Data); err == nil && d.Email != "" && store.EmailKey(d.Email) != store.EmailKey(u.Email) {
				list = append(list, host.Pending{Field: "email", Value: d.Email, ExpiresAt: t.ExpiresAt})
			}
		case store.PurposePhoneChange: // as phoneVerification names it
			list = append(list, host.Pending{Field: "phone", Value: t.Subject[strings.LastIndexByte(t.Subject, ' ')+1:], ExpiresAt: t.ExpiresAt})
		}
	}
	return list
}

func (k kit) NewAccount(ctx context.Context, p *host.NewAccount) (store.NewUser, error) {
	switch {
	case p.Password != "" && p.PasswordHash != "":
		return store.NewUser{}, invalid("password_hash", "is not to be given beside a password")
	case p.Email == "" && p.Phone == "" && len(p.Identities) == 0:
		return store.NewUser{}, invalid("email", "or phone is required")
	}
	if err := checkNotes(p.Notes); err != nil {
		return store.NewUser{}, err
	}
	if err := checkLocale(p.Locale); err != nil {
		return store.NewUser{}, err
	}
	if own, has := p.UserMetadata["locale"]; has && p.Locale != "" && own != p.Locale {
		return store.NewUser{}, invalid("locale", "differs from user_metadata.locale")
	}
	if p.Locale != "" {
		p.UserMetadata = withLocale(p.UserMetadata, p.Locale)
	}
	nu, err := k.a.newImport(ctx, ImportUserParams(p.ImportUser))
	if err != nil {
		return store.NewUser{}, err
	}
	if nu.User.Phone != "" && !p.Imported {
		if err := k.a.checkPossible(nu.User.Phone); err != nil {
			return store.NewUser{}, invalid("phone", err.Error())
		}
	}
	if p.ID = nu.User.ID; p.Password != "" && p.Hash == "" {
		if err := k.a.checkNewPassword(ctx, p.Password, nu.User.Email, nu.User.Phone, nu.User.FullName); err != nil {
			return store.NewUser{}, err
		}
		if p.Hash, err = k.a.passwords.hash(ctx, hashOwner{account: nu.User.ID}, p.Password); err != nil {
			return store.NewUser{}, hashFailed(err)
		}
	}
	if p.Hash != "" {
		nu.PasswordHash = p.Hash
	}
	nu.Notes, nu.Creating = p.Notes, k.a.creating()
	return nu, nil
}

func (k kit) DuplicateError(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return importRefused(err)
	}
	return err
}

func (k kit) PermitVerification(ctx context.Context, address string) (host.Permit, error) {
	p, err := k.a.takeSend(ctx, atOwners, KindVerifyEmail, address)
	return host.Permit{Private: p}, err
}

func (k kit) SendVerification(ctx context.Context, c *store.Change, nu *store.NewUser, p host.Permit) {
	link, message := k.a.newVerification(KindVerifyEmail, nu.User, linkData{Email: nu.User.Email, Welcome: true})
	message.Permit, _ = p.Private.(sendPermit)
	nu.Tokens = append(nu.Tokens, link)
	k.a.enclose(ctx, c, message, nu.User, &link)
}

func (k kit) Announce(ctx context.Context, c *store.Change, u User) {
	k.a.enclose(ctx, c, outbox.Outgoing{Kind: KindAccountCreated, To: u.Email}, u, nil)
}

func (k kit) InviteNew(ctx context.Context, c *store.Change, send *host.Send, nu *store.NewUser) error {
	if !k.a.Settings(ctx).Password.On() {
		return fail(CodeMethodDisabled, nil)
	}
	permit, err := drawSend(ctx, k.a, send, KindWelcome, nu.User.Email)
	if err != nil {
		return err
	}
	link, o := k.a.newWelcome(nu.User, "")
	o.Permit = permit
	nu.Tokens = append(nu.Tokens, link)
	k.a.enclose(ctx, c, o, nu.User, &link)
	return nil
}

func (k kit) Edit(ctx context.Context, c *store.Change, u User, e host.Edit) (store.UserPatch, error) {
	c.IfUsers = append(c.IfUsers, UserAt{ID: u.ID, Revision: &u.Revision})
	p := store.UserPatch{Notes: e.Notes}
	if e.Notes != nil {
		if err := checkNotes(*e.Notes); err != nil {
			return p, err
		}
	}
	if e.FullName != nil {
		name, err := cleanName(*e.FullName)
		if err != nil {
			return p, invalid("full_name", err.Error())
		}
		p.FullName = &name
	}
	for _, m := range []struct {
		field     string
		have, add map[string]any
		into      *map[string]any
	}{{"user_metadata", u.UserMetadata, e.UserMetadata, &p.UserMetadata}, {"app_metadata", u.AppMetadata, e.AppMetadata, &p.AppMetadata}} {
		if m.add == nil {
			continue
		}
		*m.into = mergePatch(m.have, m.add)
		if err := checkMetadata(*m.into); err != nil {
			return p, invalid(m.field, err.Error())
		}
	}
	return p, k.a.editRoots(ctx, c, u, e, &p)
}

// editRoots is the part of Edit for the email address and phone number.
func (a *Auth) editRoots(ctx context.Context, c *store.Change, u User, e host.Edit, p *store.UserPatch) error {
	email, err := editRoot("email", u.Email, u.EmailVerifiedAt, e.Email, e.EmailVerified, NormalizeEmail, store.EmailKey, c.Now)
	if err != nil {
		return err
	}
	possible := func(s string) (string, error) {
		phone, err := NormalizePhone(s)
		if err == nil && phone != u.Phone {
			err = a.checkPossible(phone)
		}
		return phone, err
	}
	phone, err := editRoot("phone", u.Phone, u.PhoneVerifiedAt, e.Phone, e.PhoneVerified, possible, strings.ToLower, c.Now)
	switch {
	case err != nil:
		return err
	case (email.value != nil || phone.value != nil) && email.is == "" && phone.is == "" && len(u.Identities) == 0:
		return invalid("email", "is required where there is neither a phone nor an identity")
	}
	p.Email, p.EmailVerifiedAt, p.Phone, p.PhoneVerifiedAt = email.value, email.verifiedAt, phone.value, phone.verifiedAt
	of := account{User: u, to: email.is}
	if email.moves {
		p.DropTokens = purposesOfEmail()
		a.addEvent(ctx, c, of, EventEmailChanged)
		if email.is != "" { // the new address is notified, too
			a.enclose(ctx, c, outbox.Outgoing{Kind: KindEmailChanged, To: email.is, NewAddress: email.is}, u, nil)
		}
	}
	if since := email.verifiedAt; since != nil && !since.IsZero() {
		a.addEvent(ctx, c, of, EventEmailVerified)
	}
	if of.to = ""; phone.is != "" {
		of.to = maskAddress(phone.is)
	}
	switch since := phone.verifiedAt; {
	case phone.moves:
		p.DropTokens = append(p.DropTokens, purposesOfPassword()...)
		a.addEvent(ctx, c, of, EventPhoneChanged)
	case since != nil && !since.IsZero():
		a.addEvent(ctx, c, of, EventPhoneVerified)
	}
	return nil
}

// addEvent adds an event and its notice to a change of an account.
func (a *Auth) addEvent(ctx context.Context, c *store.Change, of account, e EventType) {
	more := a.newChangeOf(ctx, c.By, of, done(Event{Type: e, UserID: of.ID}))
	c.Events, c.Messages = append(c.Events, more.Events...), append(c.Messages, more.Messages...)
}

// rootEdit is an edited email address or phone number.
type rootEdit struct {
	is         string     // after the edit
	value      *string    // for the patch
	verifiedAt *time.Time // for the patch
	moves      bool       // it differs from the old one
}

func editRoot(field, is string, since time.Time, to *string, verified *bool, clean func(string) (string, error), key func(string) string, now time.Time) (rootEdit, error) {
	r := rootEdit{is: is}
	if to != nil {
		if r.is = *to; r.is != "" {
			var err error
			if r.is, err = clean(*to); err != nil {
				return r, invalid(field, err.Error())
			}
		}
		r.moves = key(r.is) != key(is)
		if r.is != is {
			r.value = &r.is
		}
	}
	switch {
	case verified != nil && *verified && r.is == "":
		return r, invalid(field+"_verified", "cannot be true without one")
	case verified != nil && *verified && (since.IsZero() || r.moves):
		r.verifiedAt = &now
	case !since.IsZero() && (r.moves || verified != nil && !*verified):
		r.verifiedAt = &time.Time{}
	}
	return r, nil
}

func checkNotes(s string) error {
	if len(s) > maxNotes || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return invalid("notes", "are larger than 16 KiB, or no text")
	}
	return nil
}

func (k kit) PasswordPatch(ctx context.Context, u User, password *string) (store.UserPatch, error) {
	p := store.UserPatch{Revoke: &store.SessionFilter{}, DropTokens: purposesOfPassword(), DropDevices: true}
	if password == nil {
		p.PasswordHash = new(string)
		return p, nil
	}
	if *password == "" {
		return p, invalid("password", "is empty; null removes it")
	}
	chosen, err := k.a.choosePassword(ctx, PasswordChange{u, passwordByOperator}, newPassword{text: *password}, nil)
	setPassword(&p, chosen)
	return p, err
}

func (k kit) CanSignInWithout(ctx context.Context, c store.Credentials, provider string) (bool, error) {
	return k.a.canSignInWithout(ctx, c, provider)
}

func (k kit) UnlinkPatch(i Identity) store.UserPatch {
	key := store.ByIdentity(i.Provider, i.Subject)
	return store.UserPatch{Unlink: &key, DropTokens: purposesOfPassword()}
}

func (k kit) RememberRemoved(ctx context.Context, f Factor) error { return k.a.recordRemoved(ctx, f) }

func (k kit) Factors() store.FactorStore { return k.a.factors }

func (k kit) Export(ctx context.Context, userID string) (any, error) {
	return k.a.exportOf(ctx, SessionsParams{UserID: userID}, CodeUserNotFound)
}

func (k kit) Anonymize(ctx context.Context, c store.Change, u User, label string) (User, error) {
	if k.a.admin == nil {
		return User{}, fail(CodeInternal, lacks[store.AdminStore]())
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
	return k.a.admin.AnonymizeUser(ctx, p)
}

func (k kit) WriteExport(w http.ResponseWriter, r *http.Request, export any) error {
	return k.a.writeExport(w, r, export.(*Export))
}

func (k kit) TOTPSecret(ctx context.Context, userID string) (string, error) {
	if k.a.factors == nil {
		return "", nil
	}
	all, err := k.a.factors.Factors(ctx, userID)
	if err != nil {
		return "", storeFailed(err)
	}
	for _, f := range all.List {
		if !f.Enabled || f.Kind != store.FactorTOTP {
			continue
		}
		secret, _, err := k.a.keys.Open(f.Secret, []byte(f.UserID))
		if err != nil {
			return "", fail(CodeInternal, fmt.Errorf("the second factor of user %s: %w", f.UserID, err))
		}
		return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret), nil
	}
	return "", nil
}
