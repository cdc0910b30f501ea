package pgstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const factorColumns = `f.id, f.user_id, f.kind, f.several, f.required, f.label, f.credential, f.secret, f.state, f.enabled, f.created_at, f.last_used_at, f.sequence, f.added_by`

func factorOf(row pgx.CollectableRow) (store.Factor, error) {
	var f store.Factor
	var created, used pgtype.Timestamptz
	err := row.Scan(&f.ID, &f.UserID, &f.Kind, &f.Several, &f.Required, &f.Label, &f.Credential, &f.Secret, &f.State, &f.Enabled, &created, &used, &f.Sequence, &f.AddedBy)
	f.CreatedAt, f.LastUsedAt = at(created), at(used)
	return f, err
}

const selectFactors = `select ` + factorColumns + ` from auth.factors f where f.user_id = $1::uuid order by f.created_at, f.id`

const countCodes = `select count(*) from auth.recovery_codes where user_id = $1::uuid`

const countRecovery = `select (` + countCodes + `), u.recovery_sequence, u.recovery_added_by from auth.users u where u.id = $1::uuid`

// Factors reads a user's factors.
func (s *Store) Factors(ctx context.Context, userID string) (store.Factors, error) {
	all := store.Factors{List: []store.Factor{}}
	id, ok := canonical(userID)
	if !ok {
		return all, ctx.Err()
	}
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		all = store.Factors{}
		b := &pgx.Batch{}
		b.Queue(s.sql(selectFactors), id).Query(func(rows pgx.Rows) (err error) {
			all.List, err = pgx.CollectRows(rows, factorOf)
			return err
		})
		b.Queue(s.sql(countRecovery), id).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&all.RecoveryLeft, &all.Recovery.Sequence, &all.Recovery.AddedBy)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		return q.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return store.Factors{}, err
	}
	return all, nil
}

// factors reads the factors of a locked user, which no other change can alter.
func (s *Store) factors(ctx context.Context, tx pgx.Tx, of *lockedUser) ([]store.Factor, error) {
	if of == nil {
		return nil, store.ErrNotFound
	}
	rows, err := tx.Query(ctx, s.sql(selectFactors), of.id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, factorOf)
}

// enabled finds an enabled factor: the one with this id, or any Required one if that is
// empty.
func enabled(list []store.Factor, id string) *store.Factor {
	want, ok := canonical(id)
	i := slices.IndexFunc(list, func(f store.Factor) bool { return f.Enabled && (id == "" && f.Required || ok && f.ID == want) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// hasKind reports whether an enabled factor of f's kind excludes f.
func hasKind(list []store.Factor, f *store.Factor) bool {
	return !f.Several && slices.ContainsFunc(list, func(o store.Factor) bool { return o.Enabled && o.Kind == f.Kind })
}

const (
	dropPending  = `delete from auth.factors f where f.user_id = $1::uuid and f.kind = $2::text and not f.enabled`
	insertFactor = `insert into auth.factors (id, user_id, kind, several, required, label, credential, secret, state, created_at, last_used_at)
	values ($1::uuid, $2::uuid, $3::text, $4::boolean, $5::boolean, $6::text, $7::bytea, $8::bytea, $9::bytea, $10::timestamptz, $11::timestamptz)`
)

// PutFactor stores a pending factor and deletes an older pending one of the same kind.
func (s *Store) PutFactor(ctx context.Context, c store.PutFactor) error {
	f := &c.Factor
	return s.change(ctx, &c.Change, target{users: []string{f.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(f.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		if hasKind(list, f) {
			return nil, &store.ConflictError{Field: "factor"}
		}
		b := &pgx.Batch{}
		b.Queue(s.sql(dropPending), of.id, f.Kind)
		b.Queue(s.sql(insertFactor), f.ID, of.id, f.Kind, f.Several, f.Required, f.Label, orNoBytes(f.Credential), nonNil(f.Secret), nonNil(f.State), f.CreatedAt, moment(f.LastUsedAt))
		return &result{about: of.id}, send(ctx, tx, b)
	})
}

// orNoBytes returns nil, which is null, for an empty slice.
func orNoBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

const enableFactor = `update auth.factors set enabled = true, state = $2::bytea, sequence = $3::bigint, added_by = $4::bigint where id = $1::uuid`

const replaceCodes = `with gone as (
		delete from auth.recovery_codes c where c.user_id = $1::uuid and c.hash <> all ($2::bytea[])
	)
	insert into auth.recovery_codes (user_id, hash) select distinct $1::uuid, h from unnest($2::bytea[]) h
	on conflict (user_id, hash) do nothing`

const (
	setRecovery = `update auth.users u set recovery_sequence = $2::bigint, recovery_added_by = $3::bigint, sequence = greatest(u.sequence, $2::bigint) where u.id = $1::uuid`

	raiseTo = `update auth.sessions set aal = $2::text, amr = $3::jsonb where id = $1::uuid`
)

// completes returns the user and the other rows that a completion locks.
func completes(userID string, c *store.Completion) target {
	on := target{users: []string{userID}}
	if c.Raise != nil {
		on.sessions = []string{c.Raise.SessionID}
	}
	if c.Redeem != nil {
		on.tokens = []store.TokenRef{*c.Redeem}
	}
	return on
}

// mayComplete checks that a completion is allowed: that its token, session and user
// permit it.
func (s *Store) mayComplete(ctx context.Context, tx pgx.Tx, h *held, of *lockedUser, c *store.Completion, now time.Time, r *result) error {
	if c.Redeem != nil {
		if r.used = h.token(*c.Redeem, now); r.used == nil || r.used.UserID != of.id {
			return store.ErrNotFound
		}
	}
	if c.Raise != nil {
		if sess := h.session(c.Raise.SessionID); sess == nil || sess.s.UserID != of.id || !sess.liveAt(now) {
			return store.ErrSessionEnded
		}
	}
	if c.Create != nil && c.Create.Session.AAL != store.LevelAAL2 {
		return store.ErrMFARequired
	}
	if of.banned(now) && (c.Redeem != nil || c.Raise != nil || c.Create != nil) {
		return store.ErrBanned
	}
	if c.Create == nil {
		return nil
	}
	return s.mayCreate(ctx, tx, of, c.Create, now, r)
}

// complete carries out a completion that mayComplete allowed, and reads the user
// afterwards.
func (s *Store) complete(ctx context.Context, tx pgx.Tx, h *held, of *lockedUser, c *store.Completion, ch *store.Change, r *result) (done store.FactorResult, err error) {
	b := &pgx.Batch{}
	if c.Redeem != nil {
		b.Queue(s.sql(useToken), string(c.Redeem.Purpose), c.Redeem.Hash)
	}
	sessionID := ""
	switch {
	case c.Raise != nil:
		before, err := h.session(c.Raise.SessionID).session()
		if err != nil {
			return done, err
		}
		sessionID = before.ID
		b.Queue(s.sql(raiseTo), before.ID, store.LevelAAL2, text(withMethod(before.AMR, c.Raise.Method)))
	case c.Create != nil:
		sessionID, _ = canonical(c.Create.Session.ID)
		by := of.origin(h.addedBy(&ch.By, of.id, r.used))
		if _, err := s.addSession(ctx, tx, of, c.Create, ch, by, r); err != nil {
			return done, err
		}
	}
	if sessionID != "" {
		b.Queue(s.sql(readProved), sessionID).QueryRow(func(row pgx.Row) error {
			var r sessionUser
			err := row.Scan(r.sess.andUser(&r.user, &r.user.claims)...)
			if err == nil {
				done.Session, done.User, err = r.both()
			}
			return err
		})
	} else {
		s.queueUser(b, selectUser, of.id, &done.User)
	}
	return done, send(ctx, tx, b)
}

// completed calls the callbacks of a completion that was committed.
func completed(c *store.Completion, r *result) {
	if c.Create == nil {
		return
	}
	made(&c.Create.OnNewDevice, r.tells != nil)
	if c.Create.Ended != nil && len(r.ended) > 0 {
		c.Create.Ended(r.ended)
	}
}

// EnableFactor enables a pending factor.
func (s *Store) EnableFactor(ctx context.Context, c store.EnableFactor) (done store.FactorResult, err error) {
	var r *result
	err = s.change(ctx, &c.Change, completes(c.UserID, &c.Completion), func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		id, _ := canonical(c.FactorID)
		i := slices.IndexFunc(list, func(f store.Factor) bool { return f.ID == id })
		switch {
		case i < 0:
			return nil, store.ErrNotFound
		case list[i].Enabled, hasKind(list, &list[i]):
			return nil, &store.ConflictError{Field: "factor"}
		}
		r = &result{about: of.id}
		if err := s.mayComplete(ctx, tx, h, of, &c.Completion, c.Now, r); err != nil {
			return nil, err
		}
		by := of.origin(h.addedBy(&c.By, of.id, r.used))
		b := &pgx.Batch{}
		b.Queue(s.sql(enableFactor), list[i].ID, nonNil(c.State), by.Sequence, by.AddedBy)
		s.queueMFA(b, of.id, c.Now, of.mfaEnabled || list[i].Required, &by.Sequence)
		if list[i].Required {
			kept := ""
			if c.Raise != nil {
				kept = c.Raise.SessionID
			}
			s.queueRequired(b, of.id, c.Recovery, by, kept, c.Now, r)
		}
		if err := send(ctx, tx, b); err != nil {
			return nil, err
		}
		of.credentialRevision++ // for the trust in the device of a new session
		done, err = s.complete(ctx, tx, h, of, &c.Completion, &c.Change, r)
		of.credentialRevision--
		slices.Sort(r.ended)
		return r, err
	})
	if err != nil {
		return store.FactorResult{}, err
	}
	completed(&c.Completion, r)
	return done, nil
}

// queueRequired adds to a batch the effects of a factor that becomes Required, except those
// of queueMFA.
func (s *Store) queueRequired(b *pgx.Batch, id string, recovery [][]byte, by store.Origin, keepSession string, now time.Time, r *result) {
	if recovery != nil {
		b.Queue(s.sql(replaceCodes), id, recovery)
		b.Queue(s.sql(setRecovery), id, by.Sequence, by.AddedBy)
	}
	s.queueRevoke(b, id, store.SessionFilter{Except: keepSession}, now, &r.ended)
}

// queueReleased adds to a batch the effects of a Required factor that is gone. left is
// whether another one is enabled.
func (s *Store) queueReleased(b *pgx.Batch, id string, left bool, now time.Time) {
	if !left {
		b.Queue(s.sql(replaceCodes), id, [][]byte{})
		b.Queue(s.sql(setRecovery), id, 0, 0)
	}
	s.queueMFA(b, id, now, left, nil)
}

// othersRequired reports whether a factor other than the one with this id is enabled and
// Required.
func othersRequired(list []store.Factor, id string) bool {
	return slices.ContainsFunc(list, func(o store.Factor) bool { return o.Enabled && o.Required && o.ID != id })
}

// optional returns the ids of the enabled factors that are not Required.
func optional(list []store.Factor) []string {
	ids := []string{}
	for _, f := range list {
		if f.Enabled && !f.Required {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

const updateFactor = `update auth.factors set label = $2::text, required = $3::boolean where id = $1::uuid`

// UpdateFactor changes an enabled factor.
func (s *Store) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	var done store.Factor
	err := s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		f := enabled(list, c.FactorID)
		if f == nil || c.FactorID == "" {
			return nil, store.ErrNotFound
		}
		r, was := &result{about: of.id}, f.Required
		if c.Label != nil {
			f.Label = *c.Label
		}
		if c.Required != nil {
			f.Required = *c.Required
		}
		done = *f
		b := &pgx.Batch{}
		b.Queue(s.sql(updateFactor), f.ID, f.Label, f.Required)
		switch {
		case f.Required && !was:
			s.queueMFA(b, of.id, c.Now, true, nil)
			s.queueRequired(b, of.id, c.Recovery, of.origin(h.addedBy(&c.By, of.id, nil)), c.KeepSession, c.Now, r)
		case was && !f.Required:
			s.queueReleased(b, of.id, othersRequired(list, f.ID), c.Now)
		}
		err = send(ctx, tx, b)
		slices.Sort(r.ended)
		return r, err
	})
	if err != nil {
		return store.Factor{}, err
	}
	return done, nil
}

const useFactor = `update auth.factors set state = $2::bytea, last_used_at = $3::timestamptz, secret = coalesce($4::bytea, secret) where id = $1::uuid`

// UseFactor replaces an enabled factor's state.
func (s *Store) UseFactor(ctx context.Context, c store.UseFactor) (done store.FactorResult, err error) {
	var r *result
	err = s.change(ctx, &c.Change, completes(c.UserID, &c.Completion), func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		f := enabled(list, c.FactorID)
		switch {
		case f == nil, c.FactorID == "":
			return nil, store.ErrNotFound
		case !bytes.Equal(f.State, c.State):
			return nil, store.ErrUsed
		}
		r = &result{about: of.id}
		if err := s.mayComplete(ctx, tx, h, of, &c.Completion, c.Now, r); err != nil {
			return nil, err
		}
		if _, err := tx.Exec(ctx, s.sql(useFactor), f.ID, nonNil(c.NewState), c.Now, orNoBytes(c.Secret)); err != nil {
			return nil, err
		}
		done, err = s.complete(ctx, tx, h, of, &c.Completion, &c.Change, r)
		return r, err
	})
	if err != nil {
		return store.FactorResult{}, err
	}
	completed(&c.Completion, r)
	return done, nil
}

const deleteCode = `delete from auth.recovery_codes c where c.user_id = $1::uuid
	and c.hash = (select o.hash from auth.recovery_codes o where o.user_id = $1::uuid and o.hash = any ($2::bytea[]) limit 1)`

// useCode deletes the recovery code that has one of the hashes. Errors: ErrNotFound.
func (s *Store) useCode(ctx context.Context, tx pgx.Tx, of *lockedUser, hashes [][]byte) error {
	tag, err := tx.Exec(ctx, s.sql(deleteCode), of.id, nonNil(hashes))
	if err == nil && tag.RowsAffected() == 0 {
		err = store.ErrNotFound
	}
	return err
}

// UseRecoveryCode deletes a recovery code.
func (s *Store) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (done store.FactorResult, err error) {
	var r *result
	err = s.change(ctx, &c.Change, completes(c.UserID, &c.Completion), func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		if of == nil {
			return nil, store.ErrNotFound
		}
		if err := s.useCode(ctx, tx, of, c.Hashes); err != nil {
			return nil, err
		}
		r = &result{about: of.id, left: new(int)}
		if err := s.mayComplete(ctx, tx, h, of, &c.Completion, c.Now, r); err != nil {
			return nil, err
		}
		if err := tx.QueryRow(ctx, s.sql(countCodes), of.id).Scan(r.left); err != nil {
			return nil, err
		}
		done, err = s.complete(ctx, tx, h, of, &c.Completion, &c.Change, r)
		done.RecoveryLeft = *r.left
		return r, err
	})
	if err != nil {
		return store.FactorResult{}, err
	}
	completed(&c.Completion, r)
	return done, nil
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		if of == nil || !of.mfaEnabled {
			return nil, store.ErrNotFound
		}
		b := &pgx.Batch{}
		by := of.origin(h.addedBy(&c.By, of.id, nil))
		b.Queue(s.sql(replaceCodes), of.id, nonNil(c.Hashes))
		b.Queue(s.sql(setRecovery), of.id, by.Sequence, by.AddedBy)
		b.Queue(s.sql(trustNone), of.id)
		return &result{about: of.id}, send(ctx, tx, b)
	})
}

const dropFactor = `delete from auth.factors where id = $1::uuid`

// RemoveFactor deletes one factor, or all second factors.
func (s *Store) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	var u store.User
	err := s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		f := enabled(list, c.FactorID)
		if f == nil {
			return nil, store.ErrNotFound
		}
		r := &result{about: of.id}
		if c.Recovery != nil {
			if err := s.useCode(ctx, tx, of, c.Recovery); err != nil {
				return nil, err
			}
			r.left = new(int)
		}
		b := &pgx.Batch{}
		if c.FactorID == "" {
			b.Queue(s.sql(dropFactors), of.id, optional(list), true)
		} else {
			b.Queue(s.sql(dropFactor), f.ID)
		}
		s.queueReleased(b, of.id, c.FactorID != "" && othersRequired(list, f.ID), c.Now)
		s.queueUser(b, selectUser, of.id, &u)
		if r.left != nil {
			b.Queue(s.sql(countCodes), of.id).QueryRow(func(row pgx.Row) error { return row.Scan(r.left) })
		}
		return r, send(ctx, tx, b)
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}
