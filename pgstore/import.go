package pgstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

const factorRecord = `f (id uuid, user_id uuid, kind text, several boolean, required boolean, label text, credential bytea, secret bytea, state bytea, created_at timestamptz, last_used_at timestamptz)`

type factorInput struct {
	ID         string     `json:"id"`
	UserID     string     `json:"user_id"`
	Kind       string     `json:"kind"`
	Several    bool       `json:"several"`
	Required   bool       `json:"required"`
	Label      string     `json:"label"`
	Credential *bytea     `json:"credential"`
	Secret     bytea      `json:"secret"`
	State      bytea      `json:"state"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// factorsInput returns the parameter for the factors of a new user.
func factorsInput(userID string, list ...store.Factor) string {
	return text(factorInputs(userID, list))
}

func factorInputs(userID string, list []store.Factor) []factorInput {
	inputs := []factorInput{}
	for _, f := range list {
		inputs = append(inputs, factorInput{ID: f.ID, UserID: userID, Kind: f.Kind, Several: f.Several, Required: f.Required, Label: f.Label, Credential: maybeBytes(f.Credential),
			Secret: f.Secret, State: f.State, CreatedAt: micro(f.CreatedAt), LastUsedAt: moment(f.LastUsedAt)})
	}
	return inputs
}

const insertFactors = `insert into auth.factors (id, user_id, kind, several, required, label, credential, secret, state, enabled, created_at, last_used_at, sequence)
	select f.id, f.user_id, f.kind, f.several, f.required, f.label, f.credential, f.secret, f.state, true, f.created_at, f.last_used_at, 1`

// armUser adds second factors ($2) to a user ($1) who was created in the same
// transaction.
const armUser = `with f as (
		` + insertFactors + ` from jsonb_to_recordset($2::jsonb) as ` + factorRecord + `
	)
	update auth.users u set mfa_enabled = exists (select from jsonb_to_recordset($2::jsonb) as ` + factorRecord + ` where f.required) where u.id = $1::uuid`

// importedUsers reads users from columns ($3 to $22). Postgres needs a tenth of the
// time that it needs to read them from JSON.
const importedUsers = `unnest($3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::timestamptz[],
			$9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::boolean[],
			$16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::timestamptz[], $20::boolean[], $21::text[], $22::bigint[]) with ordinality
		as r (id, email, email_key, email_verified_at, phone, phone_verified_at,
			full_name, name_key, user_metadata, app_metadata, roles, password_hash, mfa_enabled,
			created_at, updated_at, last_sign_in_at, banned_until, linked, handle, accepted_sequence, n)`

// importColumns holds the parameters of importedUsers.
type importColumns struct {
	ids                                 []string
	emails, emailKeys, phones, nameKeys []*string
	names, userMetadata, appMetadata    []string
	roles, hashes                       []string
	handles                             []*string
	emailsVerified, phonesVerified      []*time.Time
	created, updated                    []time.Time
	signedIn, banned                    []*time.Time
	mfa, linked                         []bool
	accepted                            []int64
	words, named                        []string // the words of names, and the ids of their users
}

func (c *importColumns) args() []any {
	return []any{
		c.ids, c.emails, c.emailKeys, c.emailsVerified, c.phones, c.phonesVerified,
		c.names, c.nameKeys, c.userMetadata, c.appMetadata, c.roles, c.hashes, c.mfa,
		c.created, c.updated, c.signedIn, c.banned, c.linked, c.handles, c.accepted, c.named, c.words,
	}
}

// add adds a user to be created.
func (c *importColumns) add(row store.ImportedRow) (store.User, error) {
	u := created(store.NewUser{User: row.User, Factors: row.Factors})
	userMetadata, err := object(u.UserMetadata)
	if err != nil {
		return u, err
	}
	appMetadata, err := object(u.AppMetadata)
	if err != nil {
		return u, err
	}
	c.ids = append(c.ids, u.ID)
	c.emails, c.emailKeys = append(c.emails, orNull(asText(u.Email))), append(c.emailKeys, orNull(asText(store.EmailKey(u.Email))))
	c.phones, c.nameKeys = append(c.phones, orNull(asText(u.Phone))), append(c.nameKeys, orNull(asText(store.NameKey(u.FullName))))
	c.names, c.userMetadata, c.appMetadata = append(c.names, asText(u.FullName)), append(c.userMetadata, userMetadata), append(c.appMetadata, appMetadata)
	c.roles, c.hashes = append(c.roles, arrayText(u.Roles)), append(c.hashes, asText(row.PasswordHash))
	c.emailsVerified, c.phonesVerified = append(c.emailsVerified, moment(u.EmailVerifiedAt)), append(c.phonesVerified, moment(u.PhoneVerifiedAt))
	c.created, c.updated = append(c.created, u.CreatedAt), append(c.updated, u.UpdatedAt)
	c.signedIn, c.banned = append(c.signedIn, moment(u.LastSignInAt)), append(c.banned, moment(u.BannedUntil))
	c.mfa, c.linked = append(c.mfa, u.MFAEnabled), append(c.linked, len(u.Identities) > 0)
	c.handles, c.accepted = append(c.handles, orNull(asText(u.Handle))), append(c.accepted, u.AcceptedSequence)
	for _, word := range store.NameWords(u.FullName) {
		c.named, c.words = append(c.named, u.ID), append(c.words, asText(word))
	}
	return u, nil
}

var inArray = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// arrayText returns a list as the text of a Postgres array.
func arrayText(list []string) string {
	if len(list) == 0 {
		return "{}"
	}
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = `"` + inArray.Replace(asText(s)) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

const importIdentityRecord = `i (n integer, id uuid, user_id uuid, provider text, subject text, email text, created_at timestamptz, last_sign_in_at timestamptz)`

type importIdentityInput struct {
	N      int    `json:"n"`
	UserID string `json:"user_id"`
	identityInput
}

// insertImported creates the users without a conflict, with their identities ($1) and
// factors ($2). It returns their ids and the numbers of identities and factors that it stored
// for each: those that another transaction takes at the same time are left out.
const insertImported = `with taken as (
		select i.user_id from jsonb_to_recordset($1::jsonb) as ` + importIdentityRecord + `
		join auth.identities o on o.provider = i.provider and o.subject = i.subject
		union all
		select f.user_id from jsonb_to_recordset($2::jsonb) as ` + factorRecord + ` join auth.factors o on o.credential = f.credential
	), u as (
		insert into auth.users (id, email, email_key, email_verified_at, phone, phone_verified_at, full_name, user_metadata, app_metadata, roles,
			password_hash, mfa_enabled, created_at, updated_at, last_sign_in_at, banned_until, linked, name_key, handle,
			sequence, password_sequence, email_sequence, email_verified_sequence, phone_sequence, phone_verified_sequence, accepted_sequence)
		select r.id, r.email, r.email_key, r.email_verified_at, r.phone, r.phone_verified_at, r.full_name, r.user_metadata::jsonb, r.app_metadata::jsonb, r.roles::text[],
			r.password_hash, r.mfa_enabled, r.created_at, r.updated_at, r.last_sign_in_at, r.banned_until, r.linked, r.name_key, r.handle,
			1, (r.password_hash <> '')::integer, (r.email_key is not null)::integer, (r.email_verified_at is not null)::integer, (r.phone is not null)::integer, (r.phone_verified_at is not null)::integer, r.accepted_sequence
		from ` + importedUsers + ` where r.id not in (select taken.user_id from taken) order by r.n
		on conflict do nothing
		returning id
	), words as (
		insert into auth.user_words (user_id, word)
		select w.user_id, w.word from unnest($23::uuid[], $24::text[]) as w (user_id, word) join u on u.id = w.user_id
	), identities as (
		insert into auth.identities (id, user_id, provider, subject, email, created_at, last_sign_in_at, sequence)
		select i.id, i.user_id, i.provider, i.subject, i.email, i.created_at, i.last_sign_in_at, 1
		from jsonb_to_recordset($1::jsonb) as ` + importIdentityRecord + ` join u on u.id = i.user_id order by i.n
		on conflict do nothing
		returning user_id
	), factors as (
		` + insertFactors + ` from jsonb_to_recordset($2::jsonb) as ` + factorRecord + ` join u on u.id = f.user_id order by f.credential
		on conflict do nothing
		returning user_id
	)
	select u.id, coalesce(i.n, 0), coalesce(f.n, 0) from u
	left join (select i.user_id, count(*) as n from identities i group by i.user_id) i on i.user_id = u.id
	left join (select f.user_id, count(*) as n from factors f group by f.user_id) f on f.user_id = u.id`

// conflictsOf returns the conflicting field of each user, or "" if there is no conflict
// any more. Its parameters are identities ($1), ids, keys of email addresses, phone
// numbers and handles ($2 to $5), and factors ($6).
const conflictsOf = `select r.n, case
			when exists (select from auth.users u where u.id = r.id) then 'id'
			when exists (select from auth.users u where u.email_key = r.email_key) then 'email'
			when exists (select from auth.users u where u.phone = r.phone) then 'phone'
			when exists (select from auth.users u where u.handle = r.handle) then 'handle'
			when exists (select from jsonb_to_recordset($1::jsonb) as ` + importIdentityRecord + `
				join auth.identities o on o.provider = i.provider and o.subject = i.subject where i.user_id = r.id) then 'identity'
			when exists (select from jsonb_to_recordset($6::jsonb) as ` + factorRecord + `
				join auth.factors o on o.credential = f.credential where f.user_id = r.id) then 'factor'
			else '' end
	from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) with ordinality as r (id, email_key, phone, handle, n)`

const deleteUsers = `delete from auth.users where id = any ($1::uuid[])`

// CreateUsers creates the users without a conflict in one statement, and finds the
// reasons for the others in a second one.
func (s *Store) CreateUsers(ctx context.Context, c store.CreateUsers) ([]error, error) {
	var results []error
	roles := rolesAreNotAsked
	for _, row := range c.Users {
		if len(row.User.Roles) > 0 {
			roles = rolesStay
		}
	}
	telling := tell(c.Users)
	defer telling.Wait() // the goroutine reads the caller's rows
	err := s.change(ctx, &c.Change, target{roles: roles}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		im := &importing{Store: s, tx: tx, rows: c.Users, results: make([]error, len(c.Users)), made: make([]bool, len(c.Users))}
		if err := im.run(ctx); err != nil {
			return nil, err
		}
		results = im.results
		return &result{noChange: !im.any, last: func() error {
			events, err := telling.of(im.made)
			if err != nil || len(events.ids) == 0 {
				return err
			}
			_, err = tx.Exec(ctx, s.sql(noteRows), events.args()...)
			return err
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// importing is one call of CreateUsers.
type importing struct {
	*Store
	tx      pgx.Tx
	rows    []store.ImportedRow
	results []error
	any     bool   // a user was created
	made    []bool // the rows of the created users
}

// rounds bounds how often users are inserted again who were refused without a conflict.
// Their conflict has gone meanwhile: the other row was deleted, or was itself refused
// because of another value.
const rounds = 10

// run creates the users. Rows with the same id or credential are inserted one after the
// other.
func (im *importing) run(ctx context.Context) error {
	var pending []int
	for n := range im.rows {
		if twice := im.heldTwice(n); twice != "" {
			im.results[n] = &store.ConflictError{Field: twice}
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

// heldTwice returns the field that one row by itself has twice, or "".
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
		if !f.Several && twice("factor", f.Kind) || len(f.Credential) > 0 && twice("credential", string(f.Credential)) {
			return "factor"
		}
	}
	return ""
}

// distinct returns the first row of each id and each credential, and the other rows.
func (im *importing) distinct(pending []int) (first, others []int) {
	seen := map[string]bool{}
	for _, n := range pending {
		id, _ := canonical(im.rows[n].User.ID)
		values := []string{id}
		for _, f := range im.rows[n].Factors {
			if len(f.Credential) > 0 {
				values = append(values, "credential "+string(f.Credential))
			}
		}
		if slices.ContainsFunc(values, func(v string) bool { return seen[v] }) {
			others = append(others, n)
			continue
		}
		for _, v := range values {
			seen[v] = true
		}
		first = append(first, n)
	}
	return first, others
}

// insert creates users. It returns the rows that it did not create.
func (im *importing) insert(ctx context.Context, try []int) (left []int, err error) {
	users, identities, err := im.input(try)
	if err != nil {
		return nil, err
	}
	rows, err := im.tx.Query(ctx, im.sql(insertImported), append([]any{identities, im.factors(try)}, users.args()...)...)
	if err != nil {
		return nil, err
	}
	kept := map[string][2]int{}
	var id string
	var linked, armed int
	if _, err := pgx.ForEachRow(rows, []any{&id, &linked, &armed}, func() error { kept[id] = [2]int{linked, armed}; return nil }); err != nil {
		return nil, err
	}
	var halves []string
	for _, n := range try {
		u := im.rows[n].User
		id, _ := canonical(u.ID)
		stored, ok := kept[id]
		switch {
		case !ok:
			left = append(left, n)
		case stored[0] < len(u.Identities), stored[1] < len(im.rows[n].Factors):
			left, halves = append(left, n), append(halves, id)
		default:
			im.any, im.made[n] = true, true
		}
	}
	if len(halves) > 0 {
		_, err = im.tx.Exec(ctx, im.sql(deleteUsers), halves)
	}
	return left, err
}

// judge stores the conflicts of refused rows as their results. It returns the rows that
// have no conflict any more.
func (im *importing) judge(ctx context.Context, refused []int) (left []int, err error) {
	if len(refused) == 0 {
		return nil, nil
	}
	users, identities, err := im.input(refused)
	if err != nil {
		return nil, err
	}
	rows, err := im.tx.Query(ctx, im.sql(conflictsOf), identities, users.ids, users.emailKeys, users.phones, users.handles, im.factors(refused))
	if err != nil {
		return nil, err
	}
	var n int
	var field string
	_, err = pgx.ForEachRow(rows, []any{&n, &field}, func() error {
		if of := refused[n-1]; field == "" {
			left = append(left, of)
		} else {
			im.results[of] = &store.ConflictError{Field: field}
		}
		return nil
	})
	return left, err
}

// factors returns the parameter for the factors of some of the rows.
func (im *importing) factors(of []int) string {
	factors := []factorInput{}
	for _, n := range of {
		factors = append(factors, factorInputs(im.rows[n].User.ID, im.rows[n].Factors)...)
	}
	return text(factors)
}

// input returns the parameters for some of the rows and for their identities.
func (im *importing) input(of []int) (users *importColumns, identities string, err error) {
	users = &importColumns{}
	idents := []importIdentityInput{}
	for _, n := range of {
		u, err := users.add(im.rows[n])
		if err != nil {
			return nil, "", err
		}
		for _, i := range u.Identities {
			idents = append(idents, importIdentityInput{N: n, UserID: u.ID, identityInput: identityInput{
				ID: i.ID, Provider: i.Provider, Subject: i.Subject, Email: i.Email, CreatedAt: micro(i.CreatedAt), LastSignInAt: moment(i.LastSignInAt),
			}})
		}
	}
	return users, text(idents), nil
}
