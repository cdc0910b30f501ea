package pgstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

// PutFactor keeps a pending secret in place of an older pending one.
func (s *Store) PutFactor(ctx context.Context, userID string, sealed []byte, _ time.Time) error {
	return s.do(ctx, func(ctx context.Context, q querier) error {
		tag, err := q.Exec(ctx, s.sql(`insert into auth.factors as f (user_id, secret) values ($1::uuid, $2::bytea)
			on conflict (user_id) do update set secret = excluded.secret, last_step = 0, recovery = '{}' where not f.enabled`), userID, sealed)
		if err == nil && tag.RowsAffected() == 0 {
			err = &auth.ConflictError{Field: "factor"}
		}
		return err
	})
}

// Factor reads a user's factor.
func (s *Store) Factor(ctx context.Context, userID string) (auth.Factor, error) {
	f := auth.Factor{UserID: userID}
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql("select secret, enabled, last_step, cardinality(recovery) from auth.factors where user_id = $1::uuid"), userID).
			Scan(&f.Secret, &f.Enabled, &f.LastStep, &f.RecoveryLeft)
	})
	if err != nil {
		return auth.Factor{}, err
	}
	return f, nil
}

// EnableFactor switches a pending factor on. It is a transaction that holds the
// user's row.
func (s *Store) EnableFactor(ctx context.Context, e auth.EnableFactor) (auth.User, error) {
	var u auth.User
	err := s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		there, err := s.mayEnable(ctx, tx, e)
		if err != nil {
			return err
		}
		st := &statement{}
		now := st.arg(e.Now, "timestamptz")
		recovery := e.Recovery
		if recovery == nil {
			recovery = [][]byte{}
		}
		set := "mfa_enabled = true, updated_at = " + now + ", revision = revision + 1"
		if !there {
			set += ", last_sign_in_at = " + st.arg(e.Session.CreatedAt, "timestamptz")
		}
		st.with("upd", "update auth.users u set "+set+" where u.id = "+st.arg(e.UserID, "uuid")+" returning u.*")
		st.with("factor", "update auth.factors f set enabled = true, last_step = "+st.arg(e.Step, "bigint")+", recovery = "+st.arg(recovery, "bytea[]")+" from upd where f.user_id = upd.id")
		st.with("others", revoke(st, auth.SessionFilter{Except: e.Session.ID}, e.Now, "upd.id", "upd"))
		if there {
			st.with("raised", "update auth.sessions s set aal = "+st.arg(e.Session.AAL, "text")+", amr = "+st.arg(proofs(e.Session.AMR), "jsonb")+
				" from upd where s.id = "+st.arg(e.Session.ID, "uuid"))
		} else {
			st.with("raised", insertSession(st, e.Session, "upd"))
		}
		var r userRow
		if err := tx.QueryRow(ctx, s.sql(st.text("select "+userColumns+", "+claimsColumn+" from upd u")), st.args...).Scan(append(r.into(), &r.claims)...); err != nil {
			return err
		}
		u, err = r.user()
		return err
	})
	if err != nil {
		return auth.User{}, err
	}
	return u, nil
}

// mayEnable locks the user and judges whether the factor may be enabled. It
// tells whether the session named is there.
func (s *Store) mayEnable(ctx context.Context, tx pgx.Tx, e auth.EnableFactor) (there bool, err error) {
	var banned bool
	err = tx.QueryRow(ctx, s.sql("select coalesce(banned_until > $2::timestamptz, false) from auth.users where id = $1::uuid for update"), e.UserID, e.Now).Scan(&banned)
	if err != nil {
		return false, err
	}
	var secret []byte
	var enabled bool
	if err := tx.QueryRow(ctx, s.sql("select secret, enabled from auth.factors where user_id = $1::uuid for update"), e.UserID).Scan(&secret, &enabled); err != nil {
		return false, err
	}
	var live bool
	err = tx.QueryRow(ctx, s.sql("select user_id = $2::uuid and revoked_at is null and least(idle_until, expires_at) > $3::timestamptz from auth.sessions where id = $1::uuid for update"),
		e.Session.ID, e.UserID, e.Now).Scan(&live)
	there = !errors.Is(err, pgx.ErrNoRows)
	switch {
	case err != nil && there:
		return false, err
	case enabled:
		return false, &auth.ConflictError{Field: "factor"}
	case !bytes.Equal(secret, e.Secret):
		return false, auth.ErrStale
	case banned:
		return false, auth.ErrBanned
	case there && !live:
		return false, auth.ErrStale
	}
	return there, nil
}

// UseTOTPStep moves the newest step used forward.
func (s *Store) UseTOTPStep(ctx context.Context, userID string, step int64) error {
	return s.do(ctx, func(ctx context.Context, q querier) error {
		tag, err := q.Exec(ctx, s.sql("update auth.factors set last_step = $2::bigint where user_id = $1::uuid and enabled and last_step < $2::bigint"), userID, step)
		if err == nil && tag.RowsAffected() == 0 {
			err = s.whyNot(ctx, q, userID)
		}
		return err
	})
}

// UseRecoveryCode uses a recovery code up.
func (s *Store) UseRecoveryCode(ctx context.Context, userID string, hash []byte) (int, error) {
	left := 0
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql(`update auth.factors set recovery = array_remove(recovery, $2::bytea)
			where user_id = $1::uuid and enabled and $2::bytea = any(recovery) returning cardinality(recovery)`), userID, hash).Scan(&left)
	})
	return left, err
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, userID string, hashes [][]byte) error {
	if hashes == nil {
		hashes = [][]byte{}
	}
	return s.do(ctx, func(ctx context.Context, q querier) error {
		tag, err := q.Exec(ctx, s.sql("update auth.factors set recovery = $2::bytea[] where user_id = $1::uuid and enabled"), userID, hashes)
		if err == nil && tag.RowsAffected() == 0 {
			err = auth.ErrNotFound
		}
		return err
	})
}

// RemoveFactor switches the second factor off.
func (s *Store) RemoveFactor(ctx context.Context, userID string, now time.Time) (auth.User, error) {
	st := &statement{}
	st.with("who", lockUser(st.arg(userID, "uuid"))) // before the factor, as everywhere
	st.with("gone", "delete from auth.factors where user_id = (select id from who) and enabled returning user_id")
	st.with("upd", "update auth.users u set mfa_enabled = false, updated_at = "+st.arg(now, "timestamptz")+", revision = u.revision + 1 from gone where u.id = gone.user_id returning u.*")
	text := s.sql(st.text("select " + userColumns + ", " + claimsColumn + " from upd u"))
	var u auth.User
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		var r userRow
		if err = q.QueryRow(ctx, text, st.args...).Scan(append(r.into(), &r.claims)...); err == nil {
			u, err = r.user()
		}
		return err
	})
	if err != nil {
		return auth.User{}, err
	}
	return u, nil
}

// RaiseSession lifts a session to AAL2.
func (s *Store) RaiseSession(ctx context.Context, id string, proof auth.AMR, now time.Time) (auth.Session, auth.User, error) {
	text := s.sql(`update auth.sessions s set aal = $2::text, amr = s.amr || $3::jsonb from auth.users u
		where s.id = $1::uuid and u.id = s.user_id and s.revoked_at is null and least(s.idle_until, s.expires_at) > $4::timestamptz
			and (u.banned_until is null or u.banned_until <= $4::timestamptz)
		returning ` + sessionColumns + ", " + userFacts + ", " + claimsColumn)
	r, err := s.find(ctx, true, text, id, auth.LevelAAL2, proofs([]auth.AMR{proof}), now)
	if err == nil && r == nil {
		err = s.whyNotLive(ctx, id, now)
	}
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	return r.both()
}
