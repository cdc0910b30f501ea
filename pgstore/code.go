package pgstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// stillSo checks store.UserAt, except Banned, against a user u. A null parameter is not
// checked.
const stillSo = `($7::bigint is null or u.revision = $7::bigint) and ($8::bigint is null or u.credential_revision = $8::bigint)
			and ($9::text is null or u.password_hash = $9::text)
			and ($10::text is null or coalesce(u.email_key, '') = $10::text) and ($11::boolean is null or (u.email_verified_at is not null) = $11::boolean)
			and ($12::text is null or coalesce(u.phone, '') = $12::text) and ($13::boolean is null or (u.phone_verified_at is not null) = $13::boolean)`

// stillInput returns the parameters of stillSo.
func stillInput(list []store.UserAt) []any {
	var want store.UserAt
	if len(list) > 0 {
		want = list[0]
	}
	if want.Email != nil {
		key := store.EmailKey(*want.Email)
		want.Email = &key
	}
	return []any{want.Revision, want.CredentialRevision, want.PasswordHash, want.Email, want.EmailVerified, want.Phone, want.PhoneVerified}
}

// banAsked returns the condition on the user's ban, or nil if there is none.
func banAsked(list []store.UserAt) *bool {
	if len(list) == 0 {
		return nil
	}
	return list[0].Banned
}

// tryCode checks a code and counts the attempt, for calls that have no effect but to
// use the code up. $6 is true if there are conditions on the code's user. The statement
// never waits, so that it reads code and user at one instant. A transaction handles
// locked rows and refusals.
//
// The statement finds the token's row a second time by its subject, because a code that
// superseded it meanwhile has a hash that the statement's snapshot does not show. It
// calls the claims function only for a correct code, because a failure of that would
// undo the count.
const tryCode = `with t as materialized (
		select * from auth.tokens t where t.purpose = $3::text and t.subject = $4::text and t.subject <> '' and t.expires_at > $2::timestamptz
			and (t.code_expires_at is null or t.code_expires_at > $2::timestamptz)
		for update skip locked
	), u as materialized (
		select u.* from auth.users u join t on t.user_id = u.id for no key update of u skip locked
	), judged as materialized (
		select t.user_id, case
			when t.tries >= t.max_tries then 'exhausted'
			when coalesce(t.code, t.hash) <> $5::bytea then 'wrong'
			when t.user_id is not null and u.id is null then 'refused'
			when $6::boolean and (u.id is null or not (` + stillSo + `
				and ($14::boolean is null or coalesce(u.banned_until > $2::timestamptz, false) = $14::boolean))) then 'refused'
			else 'right' end as verdict
		from t left join u on true
	), wrong as (
		update auth.tokens c set tries = c.tries + 1 from judged j
		where j.verdict = 'wrong' and c.purpose = $3::text and c.subject = $4::text and c.subject <> ''
	), used as (
		delete from auth.tokens c using judged j
		where j.verdict = 'right' and c.purpose = $3::text and c.subject = $4::text and c.subject <> ''
	), events as (
		select auth.note_events($1::jsonb, j.user_id, array[case j.verdict when 'right' then 0 else 1 end], '{}') as noted
		from judged j where j.verdict in ('right', 'wrong')
	)
	select j.verdict, ` + noted + `, ` + tokenColumns + `, ` + maybeUserColumns + `, case when j.verdict = 'right' then ` + claimsColumn + ` end
	from judged j join t on true left join u on true`

// RedeemCode checks a code and counts the attempt. It is one statement if the code has no
// other effect and all conditions are about the code's own user. That statement does
// not compare hashes in constant time. The hashes are keyed, so the duration of one
// comparison does not help to guess the code.
func (s *Store) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	if err := c.Check(); err != nil {
		return store.Token{}, store.User{}, err
	}
	b, done, err := s.bound(ctx)
	if err != nil {
		return store.Token{}, store.User{}, err
	}
	defer done()
	simple := len(c.IfUsers) == 0 || len(c.IfUsers) == 1 && c.IfUsers[0].ID == ""
	if plain(&c.Change) && simple && len(c.Messages) == 0 && isNone(&c.Effect) && c.UserID == "" {
		t, u, err := s.tryAlone(b, &c)
		if !errors.Is(err, errNotAlone) {
			return t, u, err
		}
	}
	g := &guess{c.Purpose, c.Subject, c.Hash}
	var t store.Token
	var u store.User
	err = s.change(b, &c.Change, target{users: []string{c.UserID}, code: g, roles: rolesOfEffect(&c.Effect)}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		found, err := h.liveCode(g, c.Now)
		switch {
		case errors.Is(err, store.ErrWrongCode):
			return s.countWrong(ctx, tx, found, &c, err)
		case err != nil:
			return nil, err
		}
		t, u = *found, store.User{}
		return s.use(ctx, tx, h, &c.Change, found, &c.Effect, &u)
	})
	if err != nil {
		return store.Token{}, store.User{}, err
	}
	return t, u, nil
}

const countWrong = `update auth.tokens set tries = tries + 1 where purpose = $1::text and hash = $2::bytea`

// countWrong counts a wrong attempt at a code that is locked.
func (s *Store) countWrong(ctx context.Context, tx pgx.Tx, t *store.Token, c *store.CodeAttempt, wrong error) (*result, error) {
	about := cmp.Or(c.UserID, t.UserID)
	if c.Create != nil {
		about = c.Create.User.ID
	}
	_, err := tx.Exec(ctx, s.sql(countWrong), string(t.Purpose), t.Hash)
	return &result{about: about, outcome: store.OutcomeWrongCode, refusal: wrong}, err
}

func (s *Store) tryAlone(ctx context.Context, c *store.CodeAttempt) (store.Token, store.User, error) {
	events, tried := s.noting(&c.Change)
	args := append([]any{events, c.Now, string(c.Purpose), c.Subject, c.Hash, len(c.IfUsers) > 0}, stillInput(c.IfUsers)...)
	args = append(args, banAsked(c.IfUsers))
	var verdict string
	var ok bool
	var t store.Token
	var u store.User
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		var tr tokenRow
		var ur userRow
		into := append(append([]any{&verdict, &ok}, tr.into()...), ur.into()...)
		err := q.QueryRow(ctx, s.sql(tryCode), args...).Scan(append(into, &ur.claims)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNotAlone
		}
		if err == nil {
			t = tr.token()
			u, err = ur.user()
		}
		return err
	})
	switch {
	case err != nil:
		return store.Token{}, store.User{}, err
	case (!ok || !tried) && verdict == "wrong":
		s.unrecorded(&c.Change, &result{about: t.UserID, outcome: store.OutcomeWrongCode}, tried)
	case (!ok || !tried) && verdict == "right":
		s.unrecorded(&c.Change, &result{about: t.UserID}, tried)
	}
	switch verdict {
	case "wrong":
		return store.Token{}, store.User{}, store.ErrWrongCode
	case "exhausted":
		return store.Token{}, store.User{}, store.ErrTooManyAttempts
	case "refused":
		return store.Token{}, store.User{}, errNotAlone
	}
	return t, u, nil
}
