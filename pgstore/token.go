package pgstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

// insertToken is the part that keeps a token in place of an older one about the
// same; from, if not empty, is a from clause it depends on.
func insertToken(st *statement, t auth.Token, from string) string {
	data := t.Data
	if data == nil {
		data = []byte{}
	}
	return `insert into auth.tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_tries, tries) select ` + strings.Join([]string{
		st.arg(string(t.Purpose), "text"), st.arg(t.Hash, "bytea"), st.arg(t.Subject, "text"), st.arg(orNull(t.UserID), "uuid"), st.arg(data, "bytea"),
		st.arg(t.CreatedAt, "timestamptz"), st.arg(t.ExpiresAt, "timestamptz"), st.arg(int32(t.MaxTries), "integer"), st.arg(int32(t.Tries), "integer"), //nolint:gosec // a handful
	}, ", ") + from + ` on conflict (purpose, subject) where subject <> '' do update set hash = excluded.hash, user_id = excluded.user_id, data = excluded.data,
		created_at = excluded.created_at, expires_at = excluded.expires_at, max_tries = excluded.max_tries, tries = excluded.tries`
}

// PutToken keeps a token in place of an older one about the same.
func (s *Store) PutToken(ctx context.Context, t auth.Token) error {
	st := &statement{}
	text := s.sql(insertToken(st, t, ""))
	return s.do(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, text, st.args...)
		return err
	})
}

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	var t auth.Token
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		var r tokenRow
		err := q.QueryRow(ctx, s.sql("select "+tokenColumns+" from auth.tokens t where t.purpose = $1::text and t.hash = $2::bytea and t.expires_at > $3::timestamptz"),
			string(p), hash, now).Scan(r.into()...)
		t = r.token()
		return err
	})
	if err != nil {
		return auth.Token{}, err
	}
	return t, nil
}

// candidate adds the part that finds a live token and locks it, so that of
// parallel uses the others wait and then find it gone. If the user will be
// changed, it locks them before: whoever changes or deletes a user with their
// tokens does so in this order, and another one would be a deadlock.
func candidate(st *statement, r auth.Redemption, change bool) {
	which := "purpose = " + st.arg(string(r.Purpose), "text") + " and hash = " + st.arg(r.Hash, "bytea") + " and expires_at > " + st.arg(r.Now, "timestamptz")
	if change {
		id := "(select user_id from auth.tokens where " + which + ")"
		if r.UserID != "" {
			id = st.arg(r.UserID, "uuid")
		}
		st.with("who", lockUser(id))
		which += " and (select count(*) from who) >= 0" // worked out first
	}
	st.with("cand", "select * from auth.tokens where "+which+" for update")
}

// lockUser is the part of a statement that locks a user who will be changed, or
// whose rows will be.
func lockUser(id string) string {
	return "select u.id from auth.users u where u.id = " + id + " for no key update"
}

// RedeemToken uses a token up together with its effect. Without an effect, or
// with one that touches the user's row alone, it is one statement.
func (s *Store) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	if r.Create != nil {
		return s.redeemCreating(ctx, r)
	}
	st := &statement{}
	effect := r.Patch != nil && !r.Patch.Empty()
	candidate(st, r, effect)
	id := "cand.user_id"
	if r.UserID != "" {
		id = st.arg(r.UserID, "uuid")
	}
	if effect {
		if err := applyPatch(st, *r.Patch, r.Now, "u.id = (select "+id+" from cand)"); err != nil {
			return auth.Token{}, auth.User{}, err
		}
	} else {
		st.with("upd", "select u.* from auth.users u where u.id = (select "+id+" from cand)")
	}
	// There may be no user at all, whatever the patch; one who is named has to be there.
	st.with("used", "delete from auth.tokens t using cand where t.purpose = cand.purpose and t.hash = cand.hash and ("+id+" is null or exists (select from upd))")
	join := "left join upd u on true where exists (select from upd) or " + strings.ReplaceAll(id, "cand.", "t.") + " is null"
	text := s.sql(st.text("select " + tokenColumns + ", " + maybeUserColumns + ", " + claimsColumn + " from cand t " + join))
	var t auth.Token
	var u auth.User
	redeem := func(ctx context.Context, q querier) (err error) {
		var tr tokenRow
		var ur userRow
		err = q.QueryRow(ctx, text, st.args...).Scan(append(append(tr.into(), ur.into()...), &ur.claims)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return s.whyNotRedeemed(ctx, q, r)
		}
		if err == nil {
			t = tr.token()
			u, err = ur.user()
		}
		return err
	}
	var err error
	if effect && reaches(*r.Patch) {
		err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, s.sql(`select from auth.users u where u.id = coalesce($1::uuid,
				(select t.user_id from auth.tokens t where t.purpose = $2::text and t.hash = $3::bytea)) for update`), orNull(r.UserID), string(r.Purpose), r.Hash)
			if err != nil {
				return err
			}
			return redeem(ctx, tx)
		})
	} else {
		err = s.do(ctx, redeem)
	}
	if err != nil {
		return auth.Token{}, auth.User{}, err
	}
	if effect {
		relink(&u, *r.Patch)
	}
	return t, u, nil
}

// whyNotRedeemed tells why a token was not used up.
func (s *Store) whyNotRedeemed(ctx context.Context, q querier, r auth.Redemption) error {
	var user *string
	err := q.QueryRow(ctx, s.sql("select coalesce($4::uuid, user_id)::text from auth.tokens where purpose = $1::text and hash = $2::bytea and expires_at > $3::timestamptz"),
		string(r.Purpose), r.Hash, r.Now, orNull(r.UserID)).Scan(&user)
	if err != nil {
		return err
	}
	if user == nil {
		return auth.ErrNotFound
	}
	return s.whyNot(ctx, q, *user)
}

// redeemCreating uses a token up and creates a user.
func (s *Store) redeemCreating(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	st := &statement{}
	candidate(st, r, false)
	if err := insertUser(st, *r.Create, "cand"); err != nil {
		return auth.Token{}, auth.User{}, err
	}
	st.with("used", "delete from auth.tokens t using cand where t.purpose = cand.purpose and t.hash = cand.hash")
	text := s.sql(st.text("select " + tokenColumns + " from cand t"))
	var t auth.Token
	u := created(*r.Create)
	err := s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var tr tokenRow
		if err := tx.QueryRow(ctx, text, st.args...).Scan(tr.into()...); err != nil {
			return err
		}
		t = tr.token()
		return s.finishCreating(ctx, tx, *r.Create, &u)
	})
	if err != nil {
		return auth.Token{}, auth.User{}, err
	}
	return t, u, nil
}

// TryCode judges a guess and counts it. Hashes are compared by the database, and
// not in constant time: they are keyed, so that what a comparison's duration
// tells about one helps nobody to find the next guess.
//
// The row that was locked is found again by its subject. One that superseded
// while this waited has another hash by now, which the statement's snapshot, being
// older, does not know: by the hash it would not be found, so that its guesses
// were not counted and it worked twice. The claims function is called for the
// right guess alone, since a failure of it would undo the count.
func (s *Store) TryCode(ctx context.Context, p auth.Purpose, subject string, hash []byte, now time.Time) (auth.Token, auth.User, error) {
	text := s.sql(`with t as (
			select * from auth.tokens where purpose = $1::text and subject = $2::text and subject <> '' and expires_at > $4::timestamptz for update
		), wrong as (
			update auth.tokens c set tries = t.tries + 1 from t
			where c.purpose = t.purpose and c.subject = t.subject and c.subject <> '' and t.tries < t.max_tries and t.hash <> $3::bytea
		), used as (
			delete from auth.tokens c using t
			where c.purpose = t.purpose and c.subject = t.subject and c.subject <> '' and t.tries < t.max_tries and t.hash = $3::bytea
		)
		select t.hash = $3::bytea, ` + tokenColumns + `, ` + maybeUserColumns + `, case when t.hash = $3::bytea and t.tries < t.max_tries then ` + claimsColumn + ` end from t left join auth.users u on u.id = t.user_id`)
	var t auth.Token
	var u auth.User
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		var right bool
		var tr tokenRow
		var ur userRow
		into := append(append([]any{&right}, tr.into()...), ur.into()...)
		if err = q.QueryRow(ctx, text, string(p), subject, hash, now).Scan(append(into, &ur.claims)...); err != nil {
			return err
		}
		t = tr.token()
		u, err = ur.user()
		switch {
		case err != nil:
			return err
		case t.Tries >= t.MaxTries:
			return errTooMany
		case !right:
			return errWrong
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooMany):
		err = auth.ErrTooManyTries
	case errors.Is(err, errWrong):
		err = auth.ErrWrongCode
	}
	if err == nil && t.UserID != "" && u.ID == "" { // a user made since the statement began, whose code superseded
		u, err = s.User(ctx, auth.ByID(t.UserID))
	}
	if err != nil {
		return auth.Token{}, auth.User{}, err
	}
	return t, u, nil
}

// Outcomes that count, so that they must not undo the statement that counted.
var (
	errTooMany = &counted{"too many tries"}
	errWrong   = &counted{"wrong code"}
)

// counted is an outcome that is an error for the caller and none for the
// transaction: what it counted or revoked stays.
type counted struct{ what string }

func (c *counted) Error() string { return "pgstore: " + c.what }
