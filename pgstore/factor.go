package pgstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const factorColumns = `f.id, f.user_id, f.kind, f.label, f.secret, f.enabled, f.created_at, f.last_used_at, f.last_step`

func factorOf(row pgx.CollectableRow) (store.Factor, error) {
	var f store.Factor
	var created, used pgtype.Timestamptz
	err := row.Scan(&f.ID, &f.UserID, &f.Kind, &f.Label, &f.Secret, &f.Enabled, &created, &used, &f.LastStep)
	f.CreatedAt, f.LastUsedAt = at(created), at(used)
	return f, err
}

const selectFactors = `select ` + factorColumns + ` from auth.factors f where f.user_id = $1::uuid order by f.created_at, f.id`

const countCodes = `select count(*) from auth.recovery_codes where user_id = $1::uuid`

const factorsAndCodes = `select (` + countCodes + `), ` + factorColumns + ` from (select) one left join auth.factors f on f.user_id = $1::uuid order by f.created_at, f.id`

// Factors reads a user's factors.
func (s *Store) Factors(ctx context.Context, userID string) (store.Factors, error) {
	all := store.Factors{List: []store.Factor{}}
	id, ok := canonical(userID)
	if !ok {
		return all, ctx.Err()
	}
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		all.List = []store.Factor{}
		rows, err := q.Query(ctx, s.sql(factorsAndCodes), id)
		if err != nil {
			return err
		}
		var f store.Factor
		var fid, user, kind, label pgtype.Text
		var enabled pgtype.Bool
		var step pgtype.Int8
		var created, used pgtype.Timestamptz
		_, err = pgx.ForEachRow(rows, []any{&all.RecoveryLeft, &fid, &user, &kind, &label, &f.Secret, &enabled, &created, &used, &step}, func() error {
			if fid.Valid {
				all.List = append(all.List, store.Factor{ID: fid.String, UserID: user.String, Kind: kind.String, Label: label.String, Secret: f.Secret,
					Enabled: enabled.Bool, CreatedAt: at(created), LastUsedAt: at(used), LastStep: step.Int64})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return store.Factors{}, err
	}
	return all, nil
}

// factors reads the factors of a user who is locked: nobody else changes them.
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

// enabled finds an enabled factor: the one with this id, or any if that is empty.
func enabled(list []store.Factor, id string) *store.Factor {
	want, ok := canonical(id)
	i := slices.IndexFunc(list, func(f store.Factor) bool { return f.Enabled && (id == "" || ok && f.ID == want) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func hasKind(list []store.Factor, kind string) bool {
	return slices.ContainsFunc(list, func(f store.Factor) bool { return f.Enabled && f.Kind == kind })
}

const (
	dropPending  = `delete from auth.factors f where f.user_id = $1::uuid and f.kind = $2::text and not f.enabled`
	insertFactor = `insert into auth.factors (id, user_id, kind, label, secret, created_at, last_used_at, last_step)
	values ($1::uuid, $2::uuid, $3::text, $4::text, $5::bytea, $6::timestamptz, $7::timestamptz, $8::bigint)`
)

// PutFactor keeps a pending factor in place of an older pending one.
func (s *Store) PutFactor(ctx context.Context, c store.PutFactor) error {
	f := &c.Factor
	return s.change(ctx, &c.Change, target{users: []string{f.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(f.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		if hasKind(list, f.Kind) {
			return nil, &store.ConflictError{Field: "factor"}
		}
		b := &pgx.Batch{}
		b.Queue(s.sql(dropPending), of.id, f.Kind)
		b.Queue(s.sql(insertFactor), f.ID, of.id, f.Kind, f.Label, orEmpty(f.Secret), f.CreatedAt, moment(f.LastUsedAt), f.LastStep)
		return &result{about: of.id}, send(ctx, tx, b)
	})
}

const enableFactor = `update auth.factors set enabled = true, last_step = $2::bigint where id = $1::uuid`

const replaceCodes = `with gone as (
		delete from auth.recovery_codes c where c.user_id = $1::uuid and c.hash <> all ($2::bytea[])
	)
	insert into auth.recovery_codes (user_id, hash) select distinct $1::uuid, h from unnest($2::bytea[]) h
	on conflict (user_id, hash) do nothing`

const raiseTo = `update auth.sessions set aal = $2::text, amr = $3::jsonb where id = $1::uuid`

// EnableFactor switches a pending factor on.
func (s *Store) EnableFactor(ctx context.Context, c store.EnableFactor) (store.User, error) {
	on := target{users: []string{c.UserID}, sessions: []string{c.Session.ID}}
	if c.Redeem != nil {
		on.tokens = []store.TokenRef{*c.Redeem}
	}
	var u store.User
	isNew := false
	err := s.change(ctx, &c.Change, on, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		kept := h.session(c.Session.ID)
		if err := mayEnable(&c, list, of, kept); err != nil {
			return nil, err
		}
		r := &result{about: of.id}
		if kept == nil {
			if err := s.onDevice(ctx, tx, of, &c.Session, &c.OnNewDevice, r); err != nil {
				return nil, err
			}
		}
		isNew = r.tells != nil
		b := &pgx.Batch{}
		if c.Redeem != nil {
			if r.used = h.token(*c.Redeem, c.Now); r.used == nil {
				return nil, store.ErrNotFound
			}
			b.Queue(s.sql(useToken), string(c.Redeem.Purpose), c.Redeem.Hash)
		}
		b.Queue(s.sql(enableFactor), c.FactorID, c.Step)
		b.Queue(s.sql(replaceCodes), of.id, orEmpty(c.Recovery))
		s.queueMFA(b, of.id, c.Now, true)
		s.queueRevoke(b, of.id, store.SessionFilter{Except: c.Session.ID}, c.Now, &r.ended)
		if kept != nil {
			b.Queue(s.sql(raiseTo), kept.s.ID, c.Session.AAL, text(orEmpty(c.Session.AMR)))
		}
		if err := send(ctx, tx, b); err != nil {
			return nil, err
		}
		if kept == nil {
			if _, _, _, err := s.insertSession(ctx, tx, of.id, sessionAlone(&store.CreateSession{Change: c.Change, NewSession: store.NewSession{Session: c.Session}}), nil, none, new(bool)); err != nil {
				return nil, err
			}
		}
		b = &pgx.Batch{}
		s.queueUser(b, selectUser, of.id, &u)
		return r, send(ctx, tx, b)
	})
	if err != nil {
		return store.User{}, err
	}
	made(&c.OnNewDevice, isNew)
	return u, nil
}

// mayEnable judges whether the factor may be enabled; kept is the session named,
// or nil if there is none.
func mayEnable(c *store.EnableFactor, list []store.Factor, of *lockedUser, kept *sessionRow) error {
	id, _ := canonical(c.FactorID)
	i := slices.IndexFunc(list, func(f store.Factor) bool { return f.ID == id })
	switch {
	case i < 0:
		return store.ErrNotFound
	case hasKind(list, list[i].Kind):
		return &store.ConflictError{Field: "factor"}
	case kept != nil && (kept.s.UserID != of.id || !kept.liveAt(c.Now)):
		return store.ErrSessionEnded
	case of.banned(c.Now), kept == nil && of.banned(c.Session.CreatedAt):
		return store.ErrBanned
	case kept == nil && c.Session.AAL != store.LevelAAL2:
		return store.ErrMFARequired
	}
	return nil
}

const useStep = `update auth.factors set last_step = $2::bigint, last_used_at = $3::timestamptz, secret = coalesce($4::bytea, secret) where id = $1::uuid`

// UseTOTPStep moves the newest step used forward.
func (s *Store) UseTOTPStep(ctx context.Context, c store.UseTOTPStep) error {
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		f := enabled(list, c.FactorID)
		switch {
		case f == nil, c.FactorID == "":
			return nil, store.ErrNotFound
		case c.Step <= f.LastStep:
			return nil, store.ErrUsed
		}
		var secret []byte // null
		if len(c.Secret) > 0 {
			secret = c.Secret
		}
		_, err = tx.Exec(ctx, s.sql(useStep), f.ID, c.Step, c.Now, secret)
		return &result{about: of.id}, err
	})
}

const deleteCode = `delete from auth.recovery_codes c where c.user_id = $1::uuid
	and c.hash = (select o.hash from auth.recovery_codes o where o.user_id = $1::uuid and o.hash = any ($2::bytea[]) limit 1)`

// useCode uses up the recovery code that has one of the hashes.
func (s *Store) useCode(ctx context.Context, tx pgx.Tx, of *lockedUser, hashes [][]byte) error {
	tag, err := tx.Exec(ctx, s.sql(deleteCode), of.id, orEmpty(hashes))
	if err == nil && tag.RowsAffected() == 0 {
		err = store.ErrNotFound
	}
	return err
}

// UseRecoveryCode uses a recovery code up.
func (s *Store) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (int, error) {
	left := 0
	err := s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		if of == nil {
			return nil, store.ErrNotFound
		}
		err := s.useCode(ctx, tx, of, c.Hashes)
		if err != nil {
			return nil, err
		}
		return &result{about: of.id, left: &left}, tx.QueryRow(ctx, s.sql(countCodes), of.id).Scan(&left)
	})
	if err != nil {
		return 0, err
	}
	return left, nil
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(c.UserID)
		list, err := s.factors(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		if enabled(list, "") == nil {
			return nil, store.ErrNotFound
		}
		b := &pgx.Batch{}
		b.Queue(s.sql(replaceCodes), of.id, orEmpty(c.Hashes))
		b.Queue(s.sql(trustNone), of.id)
		return &result{about: of.id}, send(ctx, tx, b)
	})
}

const dropFactor = `delete from auth.factors where id = $1::uuid`

// RemoveFactor switches one second factor off, or all of them.
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
		others := slices.ContainsFunc(list, func(o store.Factor) bool { return o.Enabled && o.ID != f.ID })
		switch {
		case c.FactorID == "":
			others = false
			b.Queue(s.sql(dropFactors), of.id)
		case others:
			b.Queue(s.sql(dropFactor), f.ID)
		default:
			b.Queue(s.sql(dropFactor), f.ID)
			b.Queue(s.sql(replaceCodes), of.id, [][]byte{})
		}
		s.queueMFA(b, of.id, c.Now, others)
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

// RaiseSession lifts a session to AAL2.
func (s *Store) RaiseSession(ctx context.Context, c store.RaiseSession) (store.Session, store.User, error) {
	return s.addProof(ctx, store.AddProof(c), store.LevelAAL2)
}
