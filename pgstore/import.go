package pgstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

const factorRecord = `f (id uuid, user_id uuid, kind text, label text, secret bytea, created_at timestamptz, last_used_at timestamptz, last_step bigint)`

type factorInput struct {
	ID         string     `json:"id"`
	UserID     string     `json:"user_id"`
	Kind       string     `json:"kind"`
	Label      string     `json:"label"`
	Secret     bytea      `json:"secret"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	LastStep   int64      `json:"last_step"`
}

// factorsInput is the parameter for factors that come with a user.
func factorsInput(userID string, list ...auth.Factor) string { return text(factorInputs(userID, list)) }

func factorInputs(userID string, list []auth.Factor) []factorInput {
	inputs := []factorInput{}
	for _, f := range list {
		inputs = append(inputs, factorInput{ID: f.ID, UserID: userID, Kind: f.Kind, Label: f.Label, Secret: f.Secret,
			CreatedAt: micro(f.CreatedAt), LastUsedAt: moment(f.LastUsedAt), LastStep: f.LastStep})
	}
	return inputs
}

const insertFactors = `insert into auth.factors (id, user_id, kind, label, secret, enabled, created_at, last_used_at, last_step)
	select f.id, f.user_id, f.kind, f.label, f.secret, true, f.created_at, f.last_used_at, f.last_step`

// armUser gives a user ($1) who was made in the same transaction second factors
// ($2).
const armUser = `with f as (
		` + insertFactors + ` from jsonb_to_recordset($2::jsonb) as ` + factorRecord + `
	)
	update auth.users u set mfa_enabled = true where u.id = $1::uuid`

const importRecord = `r (n integer, id uuid, email text, email_key text, email_verified_at timestamptz, phone text, phone_verified_at timestamptz,
			full_name text, name_key text, user_metadata jsonb, app_metadata jsonb, roles text[], password_hash text, mfa_enabled boolean,
			created_at timestamptz, updated_at timestamptz, last_sign_in_at timestamptz, banned_until timestamptz, linked boolean)`

type importInput struct {
	N               int             `json:"n"`
	ID              string          `json:"id"`
	Email           *string         `json:"email"`
	EmailKey        *string         `json:"email_key"`
	EmailVerifiedAt *time.Time      `json:"email_verified_at"`
	Phone           *string         `json:"phone"`
	PhoneVerifiedAt *time.Time      `json:"phone_verified_at"`
	FullName        string          `json:"full_name"`
	NameKey         *string         `json:"name_key"`
	UserMetadata    json.RawMessage `json:"user_metadata"`
	AppMetadata     json.RawMessage `json:"app_metadata"`
	Roles           []string        `json:"roles"`
	PasswordHash    string          `json:"password_hash"`
	MFAEnabled      bool            `json:"mfa_enabled"`
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
	LastSignInAt    *time.Time      `json:"last_sign_in_at"`
	BannedUntil     *time.Time      `json:"banned_until"`
	Linked          bool            `json:"linked"`
}

const importIdentityRecord = `i (n integer, id uuid, user_id uuid, provider text, subject text, email text, created_at timestamptz, last_sign_in_at timestamptz)`

type importIdentityInput struct {
	N      int    `json:"n"`
	UserID string `json:"user_id"`
	identityInput
}

// insertImported creates those users ($1) of whom no unique value is taken, with
// their identities ($2) and factors ($3), and tells who they are and how many of
// their identities were kept: one that was taken this very moment is left out.
const insertImported = `with taken as (
		select i.user_id from jsonb_to_recordset($2::jsonb) as ` + importIdentityRecord + `
		join auth.identities o on o.provider = i.provider and o.subject = i.subject
	), u as (
		insert into auth.users (id, email, email_key, email_verified_at, phone, phone_verified_at, full_name, user_metadata, app_metadata, roles,
			password_hash, mfa_enabled, created_at, updated_at, last_sign_in_at, banned_until, linked, name_key)
		select r.id, r.email, r.email_key, r.email_verified_at, r.phone, r.phone_verified_at, r.full_name, r.user_metadata, r.app_metadata, r.roles,
			r.password_hash, r.mfa_enabled, r.created_at, r.updated_at, r.last_sign_in_at, r.banned_until, r.linked, r.name_key
		from jsonb_to_recordset($1::jsonb) as ` + importRecord + ` where r.id not in (select taken.user_id from taken) order by r.n
		on conflict do nothing
		returning id
	), identities as (
		insert into auth.identities (id, user_id, provider, subject, email, created_at, last_sign_in_at)
		select i.id, i.user_id, i.provider, i.subject, i.email, i.created_at, i.last_sign_in_at
		from jsonb_to_recordset($2::jsonb) as ` + importIdentityRecord + ` join u on u.id = i.user_id order by i.n
		on conflict do nothing
		returning user_id
	), factors as (
		` + insertFactors + ` from jsonb_to_recordset($3::jsonb) as ` + factorRecord + ` join u on u.id = f.user_id
	)
	select u.id, (select count(*) from identities i where i.user_id = u.id) from u`

// conflictsOf tells which value of users ($1) with identities ($2) is taken;
// empty if none is by now.
const conflictsOf = `select r.n, case
			when exists (select from auth.users u where u.id = r.id) then 'id'
			when exists (select from auth.users u where u.email_key = r.email_key) then 'email'
			when exists (select from auth.users u where u.phone = r.phone) then 'phone'
			when exists (select from jsonb_to_recordset($2::jsonb) as ` + importIdentityRecord + `
				join auth.identities o on o.provider = i.provider and o.subject = i.subject where i.user_id = r.id) then 'identity'
			else '' end
	from jsonb_to_recordset($1::jsonb) as ` + importRecord

const deleteUsers = `delete from auth.users where id = any ($1::uuid[])`

// CreateUsers adds each of the users that can be added, in one statement, and one
// more that tells why some cannot.
func (s *Store) CreateUsers(ctx context.Context, c auth.CreateUsers) ([]error, error) {
	var results []error
	roles := rolesAreNotAsked
	for _, row := range c.Users {
		if len(row.User.Roles) > 0 {
			roles = rolesStay
		}
	}
	err := s.change(ctx, &c.Change, target{roles: roles}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		im := &importing{Store: s, tx: tx, rows: c.Users, results: make([]error, len(c.Users))}
		if err := im.run(ctx); err != nil {
			return nil, err
		}
		results = im.results
		return &result{noChange: !im.any, last: func() error {
			if len(im.events) == 0 {
				return nil
			}
			_, err := tx.Exec(ctx, s.sql(noteEvents), eventsInput(true, im.events))
			return err
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// importing is a call of CreateUsers.
type importing struct {
	*Store
	tx      pgx.Tx
	rows    []auth.ImportedRow
	results []error
	any     bool                // somebody was created
	events  []auth.OutcomeEvent // of whoever was created
}

// rounds bounds how often users are tried whom nothing seems to keep out: whoever
// stood in their way has gone meanwhile, or was refused for another value.
const rounds = 10

// run creates who can be created. Those with one id are tried one after the
// other.
func (im *importing) run(ctx context.Context) error {
	var pending []int
	for n := range im.rows {
		if twice := im.heldTwice(n); twice != "" {
			im.results[n] = &auth.ConflictError{Field: twice}
			continue
		}
		pending = append(pending, n)
	}
	for range len(im.rows) + rounds {
		if len(pending) == 0 {
			return nil
		}
		try, later := im.distinct(pending)
		left, err := im.insert(ctx, try)
		if err != nil {
			return err
		}
		left, err = im.judge(ctx, left)
		if err != nil {
			return err
		}
		pending = slices.Sorted(slices.Values(append(left, later...)))
	}
	return errMoved
}

// heldTwice is what a user would have twice, by itself.
func (im *importing) heldTwice(n int) string {
	seen := map[string]bool{}
	twice := func(kind string, values ...string) bool {
		key := text(append([]string{kind}, values...))
		was := seen[key]
		seen[key] = true
		return was
	}
	for _, i := range im.rows[n].User.Identities {
		if twice("identity", i.Provider, i.Subject) {
			return "identity"
		}
	}
	for _, f := range im.rows[n].Factors {
		if twice("factor", f.Kind) {
			return "factor"
		}
	}
	return ""
}

// distinct are the first rows of each id, and the others.
func (im *importing) distinct(pending []int) (first, others []int) {
	seen := map[string]bool{}
	for _, n := range pending {
		id, _ := canonical(im.rows[n].User.ID)
		if seen[id] {
			others = append(others, n)
			continue
		}
		seen[id] = true
		first = append(first, n)
	}
	return first, others
}

// insert creates users, and returns the rows of those whom something keeps out.
func (im *importing) insert(ctx context.Context, try []int) (left []int, err error) {
	users, identities, err := im.input(try)
	if err != nil {
		return nil, err
	}
	factors := []factorInput{}
	for _, n := range try {
		factors = append(factors, factorInputs(im.rows[n].User.ID, im.rows[n].Factors)...)
	}
	rows, err := im.tx.Query(ctx, im.sql(insertImported), users, identities, text(factors))
	if err != nil {
		return nil, err
	}
	kept := map[string]int{}
	var id string
	var count int
	if _, err := pgx.ForEachRow(rows, []any{&id, &count}, func() error { kept[id] = count; return nil }); err != nil {
		return nil, err
	}
	var halves []string
	for _, n := range try {
		u := im.rows[n].User
		id, _ := canonical(u.ID)
		linked, ok := kept[id]
		switch {
		case !ok:
			left = append(left, n)
		case linked < len(u.Identities):
			left, halves = append(left, n), append(halves, id)
		default:
			im.any = true
			im.note(n)
		}
	}
	if len(halves) > 0 {
		_, err = im.tx.Exec(ctx, im.sql(deleteUsers), halves)
	}
	return left, err
}

// note takes the events of a user who was created.
func (im *importing) note(n int) {
	for _, e := range im.rows[n].Events {
		if e.UserID == "" {
			e.UserID = im.rows[n].User.ID
		}
		im.events = append(im.events, auth.OutcomeEvent{On: auth.OutcomeDone, Event: e})
	}
}

// judge tells of users what keeps them out, and returns the rows of those whom
// nothing does by now.
func (im *importing) judge(ctx context.Context, refused []int) (left []int, err error) {
	if len(refused) == 0 {
		return nil, nil
	}
	users, identities, err := im.input(refused)
	if err != nil {
		return nil, err
	}
	rows, err := im.tx.Query(ctx, im.sql(conflictsOf), users, identities)
	if err != nil {
		return nil, err
	}
	var n int
	var field string
	_, err = pgx.ForEachRow(rows, []any{&n, &field}, func() error {
		if field == "" {
			left = append(left, n)
		} else {
			im.results[n] = &auth.ConflictError{Field: field}
		}
		return nil
	})
	return left, err
}

// input are the parameters for some of the users and for their identities.
func (im *importing) input(of []int) (users, identities string, err error) {
	list, idents := []importInput{}, []importIdentityInput{}
	for _, n := range of {
		row := im.rows[n]
		u := created(auth.NewUser{User: row.User, Factors: row.Factors})
		userMetadata, err := object(u.UserMetadata)
		if err != nil {
			return "", "", err
		}
		appMetadata, err := object(u.AppMetadata)
		if err != nil {
			return "", "", err
		}
		list = append(list, importInput{
			N: n, ID: u.ID, Email: orNull(u.Email), EmailKey: orNull(auth.EmailKey(u.Email)), EmailVerifiedAt: moment(u.EmailVerifiedAt),
			Phone: orNull(u.Phone), PhoneVerifiedAt: moment(u.PhoneVerifiedAt), FullName: u.FullName, NameKey: orNull(auth.NameKey(u.FullName)),
			UserMetadata: json.RawMessage(userMetadata), AppMetadata: json.RawMessage(appMetadata), Roles: orEmpty(u.Roles),
			PasswordHash: row.PasswordHash, MFAEnabled: u.MFAEnabled, CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt,
			LastSignInAt: moment(u.LastSignInAt), BannedUntil: moment(u.BannedUntil), Linked: len(u.Identities) > 0,
		})
		for _, i := range u.Identities {
			idents = append(idents, importIdentityInput{N: n, UserID: u.ID, identityInput: identityInput{
				ID: i.ID, Provider: i.Provider, Subject: i.Subject, Email: i.Email, CreatedAt: micro(i.CreatedAt), LastSignInAt: moment(i.LastSignInAt),
			}})
		}
	}
	return text(list), text(idents), nil
}
