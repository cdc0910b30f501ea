package pgstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

// CreateUser adds a user with everything that comes with it. With a
// NewUser.Creating it is a transaction, otherwise one statement.
func (s *Store) CreateUser(ctx context.Context, nu auth.NewUser) (auth.User, error) {
	st := &statement{}
	if err := insertUser(st, nu, ""); err != nil {
		return auth.User{}, err
	}
	text := s.sql(st.text("select id from ins"))
	u := created(nu)
	if nu.Creating == nil && s.claims == "" {
		err := s.do(ctx, func(ctx context.Context, q querier) error {
			_, err := q.Exec(ctx, text, st.args...)
			return err
		})
		return u, err
	}
	err := s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, text, st.args...); err != nil {
			return err
		}
		return s.finishCreating(ctx, tx, nu, &u)
	})
	if err != nil {
		return auth.User{}, err
	}
	return u, nil
}

// finishCreating is what happens to a new user in the transaction that made it.
func (s *Store) finishCreating(ctx context.Context, tx pgx.Tx, nu auth.NewUser, u *auth.User) error {
	if nu.Creating != nil {
		if err := nu.Creating(ctx, *u); err != nil {
			return hookFailed{err}
		}
	}
	if s.claims == "" {
		return nil
	}
	return tx.QueryRow(ctx, "select "+s.claims+"($1::uuid)", u.ID).Scan(&u.Claims)
}

// created is the user that CreateUser makes.
func created(nu auth.NewUser) auth.User {
	u := nu.User
	u.Revision, u.Claims = 0, nil
	if nu.Session != nil {
		u.LastSignInAt = nu.Session.CreatedAt
	}
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	return u
}

// insertUser adds the parts that create a user; from, if not empty, names an
// earlier part that has a row if they are to happen.
func insertUser(st *statement, nu auth.NewUser, from string) error {
	u := created(nu)
	userMetadata, err := object(u.UserMetadata)
	if err != nil {
		return err
	}
	appMetadata, err := object(u.AppMetadata)
	if err != nil {
		return err
	}
	roles := u.Roles
	if roles == nil {
		roles = []string{}
	}
	values := strings.Join([]string{
		st.arg(u.ID, "uuid"), st.arg(orNull(u.Email), "text"), st.arg(orNull(auth.EmailKey(u.Email)), "text"), st.arg(u.EmailVerified, "boolean"),
		st.arg(orNull(u.Phone), "text"), st.arg(u.PhoneVerified, "boolean"), st.arg(u.FullName, "text"), st.arg(userMetadata, "jsonb"), st.arg(appMetadata, "jsonb"),
		st.arg(roles, "text[]"), st.arg(nu.PasswordHash, "text"), st.arg(u.MFAEnabled, "boolean"), st.arg(u.CreatedAt, "timestamptz"), st.arg(u.UpdatedAt, "timestamptz"),
		st.arg(orNull(u.LastSignInAt), "timestamptz"), st.arg(orNull(u.BannedUntil), "timestamptz"), st.arg(len(u.Identities) > 0, "boolean"),
	}, ", ")
	if from != "" {
		values += " from " + from
	}
	st.with("ins", `insert into auth.users (id, email, email_key, email_verified, phone, phone_verified, full_name, user_metadata, app_metadata, roles,
		password_hash, mfa_enabled, created_at, updated_at, last_sign_in_at, banned_until, linked) select `+values+` returning *`)
	for i, id := range u.Identities {
		st.with("identity"+digit(i), insertIdentity(st, id, "ins"))
	}
	if nu.Session != nil {
		st.with("ses", insertSession(st, *nu.Session, "ins"))
	}
	for i, t := range nu.Tokens {
		superseded := func(o auth.Token) bool { return t.Subject != "" && o.Purpose == t.Purpose && o.Subject == t.Subject }
		if !slices.ContainsFunc(nu.Tokens[i+1:], superseded) { // one statement cannot write a row twice
			st.with("token"+digit(i), insertToken(st, t, " from ins"))
		}
	}
	return nil
}

func digit(i int) string { return strconv.Itoa(i) }

func insertIdentity(st *statement, id auth.Identity, from string) string {
	return `insert into auth.identities (id, user_id, provider, subject, email, created_at, last_sign_in_at) select ` + strings.Join([]string{
		st.arg(id.ID, "uuid"), from + ".id", st.arg(id.Provider, "text"), st.arg(id.Subject, "text"), st.arg(id.Email, "text"),
		st.arg(id.CreatedAt, "timestamptz"), st.arg(orNull(id.LastSignInAt), "timestamptz"),
	}, ", ") + " from " + from
}

// by is the condition that a key stands for.
func by(st *statement, key auth.UserKey) string {
	switch {
	case key.ID != "":
		return "u.id = " + st.arg(key.ID, "uuid")
	case key.Email != "":
		return "u.email_key = " + st.arg(auth.EmailKey(key.Email), "text")
	case key.Phone != "":
		return "u.phone = " + st.arg(key.Phone, "text")
	}
	return "u.id = (select i.user_id from auth.identities i where i.provider = " + st.arg(key.Provider, "text") + " and i.subject = " + st.arg(key.Subject, "text") + ")"
}

// User finds one user.
func (s *Store) User(ctx context.Context, key auth.UserKey) (auth.User, error) {
	c, err := s.Credentials(ctx, key)
	return c.User, err
}

// Credentials finds one user with the password hash.
func (s *Store) Credentials(ctx context.Context, key auth.UserKey) (auth.Credentials, error) {
	st := &statement{}
	text := s.sql("select u.password_hash, " + userColumns + ", " + claimsColumn + " from auth.users u where " + by(st, key))
	var c auth.Credentials
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		if name := key.ID + key.Email + key.Phone + key.Provider + key.Subject; strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
			return pgx.ErrNoRows // no text that Postgres keeps, so nobody's
		}
		var r userRow
		if err = q.QueryRow(ctx, text, st.args...).Scan(append(append([]any{&c.PasswordHash}, r.into()...), &r.claims)...); err == nil {
			c.User, err = r.user()
		}
		return err
	})
	if err != nil {
		return auth.Credentials{}, err
	}
	return c, nil
}

// UpdateUser applies a patch. One that changes more than the user's own row is a
// transaction.
func (s *Store) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	st := &statement{}
	if err := applyPatch(st, p, now, "u.id = "+st.arg(id, "uuid")); err != nil {
		return auth.User{}, err
	}
	claims := claimsColumn
	if p.BannedUntil != nil { // leads to no token, and must not fail for want of claims
		claims = "null::jsonb"
	}
	text := s.sql(st.text("select " + userColumns + ", " + claims + " from upd u"))
	var u auth.User
	update := func(ctx context.Context, q querier) error {
		var r userRow
		err := q.QueryRow(ctx, text, st.args...).Scan(append(r.into(), &r.claims)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return s.whyNot(ctx, q, id)
		}
		if err == nil {
			u, err = r.user()
		}
		return err
	}
	var err error
	if reaches(p) {
		err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, s.sql("select from auth.users where id = $1::uuid for update"), id); err != nil {
				return err
			}
			return update(ctx, tx)
		})
	} else {
		err = s.do(ctx, update)
	}
	if err != nil {
		return auth.User{}, err
	}
	relink(&u, p)
	return u, nil
}

// reaches tells whether a patch changes more than the user's own row. Then that
// row is locked before the statement takes its snapshot: whoever made a session,
// token or identity on the user as they were holds or held that lock, and what
// they made is seen.
func reaches(p auth.UserPatch) bool {
	return p.Revoke != nil || len(p.DropTokens) > 0 || p.DropIdentities || p.Link != nil || p.Unlink != nil || p.RemoveFactor
}

// whyNot tells why a patch did not apply.
func (s *Store) whyNot(ctx context.Context, q querier, id string) error {
	err := q.QueryRow(ctx, s.sql("select from auth.users where id = $1::uuid"), id).Scan()
	if err == nil {
		return auth.ErrStale
	}
	return err
}

// applyPatch adds the parts that change a user; where says which, as u.
func applyPatch(st *statement, p auth.UserPatch, now time.Time, where string) error {
	sets := []string{"updated_at = " + st.arg(now, "timestamptz"), "revision = u.revision + 1"}
	set := func(column string, v any, sqlType string) { sets = append(sets, column+" = "+st.arg(v, sqlType)) }
	if p.Email != nil {
		set("email", orNull(*p.Email), "text")
		set("email_key", orNull(auth.EmailKey(*p.Email)), "text")
	}
	if p.EmailVerified != nil {
		set("email_verified", *p.EmailVerified, "boolean")
	}
	if p.Phone != nil {
		set("phone", orNull(*p.Phone), "text")
	}
	if p.PhoneVerified != nil {
		set("phone_verified", *p.PhoneVerified, "boolean")
	}
	if p.FullName != nil {
		set("full_name", *p.FullName, "text")
	}
	for column, m := range map[string]map[string]any{"user_metadata": p.UserMetadata, "app_metadata": p.AppMetadata} {
		if m == nil {
			continue
		}
		o, err := object(m)
		if err != nil {
			return err
		}
		set(column, o, "jsonb")
	}
	if p.PasswordHash != nil {
		set("password_hash", *p.PasswordHash, "text")
	}
	if p.BannedUntil != nil {
		set("banned_until", orNull(*p.BannedUntil), "timestamptz")
	}
	if p.RemoveFactor {
		sets = append(sets, "mfa_enabled = false")
	}
	if p.Link != nil {
		sets = append(sets, "linked = true")
	}
	if p.IfRevision != nil {
		where += " and u.revision = " + st.arg(*p.IfRevision, "bigint")
	}
	if p.IfPasswordHash != nil {
		where += " and u.password_hash = " + st.arg(*p.IfPasswordHash, "text")
	}
	st.with("upd", "update auth.users u set "+strings.Join(sets, ", ")+" where "+where+" returning u.*")
	if p.RemoveFactor {
		st.with("factor", "delete from auth.factors f using upd where f.user_id = upd.id")
	}
	if p.Revoke != nil {
		st.with("revoked", revoke(st, *p.Revoke, now, "upd.id", "upd"))
	}
	if len(p.DropTokens) > 0 {
		st.with("dropped", "delete from auth.tokens t using upd where t.user_id = upd.id and t.purpose = any("+st.arg(purposes(p.DropTokens), "text[]")+")")
	}
	patchIdentities(st, p)
	return nil
}

func purposes(list []auth.Purpose) []string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = string(p)
	}
	return names
}

// patchIdentities adds the parts about identities, which happen to the rows as
// they were before the statement: what is linked is neither dropped nor unlinked.
func patchIdentities(st *statement, p auth.UserPatch) {
	mine := "i.user_id = upd.id"
	linked := "false"
	if p.Link != nil {
		linked = "(i.provider = " + st.arg(p.Link.Provider, "text") + " and i.subject = " + st.arg(p.Link.Subject, "text") + ")"
	}
	switch {
	case p.DropIdentities:
		st.with("unlinked", "delete from auth.identities i using upd where "+mine+" and not "+linked)
	case p.Unlink != nil:
		st.with("unlinked", "delete from auth.identities i using upd where "+mine+" and i.provider = "+st.arg(p.Unlink.Provider, "text")+
			" and i.subject = "+st.arg(p.Unlink.Subject, "text")+" and not "+linked)
	}
	if l := p.Link; l != nil {
		st.with("renewed", "update auth.identities i set id = "+st.arg(l.ID, "uuid")+", email = "+st.arg(l.Email, "text")+
			", created_at = "+st.arg(l.CreatedAt, "timestamptz")+", last_sign_in_at = "+st.arg(orNull(l.LastSignInAt), "timestamptz")+
			" from upd where "+mine+" and "+linked+" returning i.id")
		// Somebody else's violates the unique constraint, and nothing happens.
		st.with("linked", insertIdentity(st, *l, "upd")+" where not exists (select from renewed)")
	}
}

// relink applies a patch's part about identities to a user as it was read, which
// is as it was before the statement.
func relink(u *auth.User, p auth.UserPatch) {
	is := func(provider, subject string) func(auth.Identity) bool {
		return func(i auth.Identity) bool { return i.Provider == provider && i.Subject == subject }
	}
	if p.DropIdentities {
		kept := u.Identities[:0:0]
		if p.Link != nil {
			kept = slices.DeleteFunc(slices.Clone(u.Identities), func(i auth.Identity) bool { return !is(p.Link.Provider, p.Link.Subject)(i) })
		}
		u.Identities = kept
	}
	if p.Unlink != nil {
		u.Identities = slices.DeleteFunc(u.Identities, is(p.Unlink.Provider, p.Unlink.Subject))
	}
	if p.Link == nil {
		return
	}
	if i := slices.IndexFunc(u.Identities, is(p.Link.Provider, p.Link.Subject)); i >= 0 {
		u.Identities[i] = *p.Link
	} else {
		u.Identities = append(u.Identities, *p.Link)
	}
}

// DeleteUser removes the user; the rest goes along by its foreign keys.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	return s.do(ctx, func(ctx context.Context, q querier) error {
		tag, err := q.Exec(ctx, s.sql("delete from auth.users where id = $1::uuid"), id)
		if err == nil && tag.RowsAffected() == 0 {
			err = auth.ErrNotFound
		}
		return err
	})
}
