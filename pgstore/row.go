package pgstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/authmount/auth/store"
)

// How rows become auth's types. Lists of columns name the alias of their table.

const userColumns = "u.id, " + userFacts

// userFacts are the columns of a user whose id is known.
const userFacts = `u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, u.handle,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by,
	u.email_verified_sequence, u.email_verified_added_by, u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by,
	u.accepted_sequence, u.accepted_until`

// maybeUserColumns are userColumns of a row that may be missing (outer joins).
const maybeUserColumns = `coalesce(u.id::text, ''), u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	coalesce(u.full_name, ''), u.user_metadata, u.app_metadata, u.roles, coalesce(u.mfa_enabled, false), u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	coalesce(u.revision, 0), coalesce(u.credential_revision, 0), case when u.linked then auth.identities_of(u.id) end, u.handle,
	coalesce(u.sequence, 0), coalesce(u.password_sequence, 0), coalesce(u.password_added_by, 0), coalesce(u.email_sequence, 0), coalesce(u.email_added_by, 0),
	coalesce(u.email_verified_sequence, 0), coalesce(u.email_verified_added_by, 0), coalesce(u.phone_sequence, 0), coalesce(u.phone_added_by, 0), coalesce(u.phone_verified_sequence, 0), coalesce(u.phone_verified_added_by, 0),
	coalesce(u.accepted_sequence, 0), u.accepted_until`

// claimsColumn is replaced by a call of the claims function, if there is one.
const claimsColumn = `null::jsonb /* claims */`

const sessionColumns = `s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at,
	s.ip, s.user_agent, s.device, s.revoked_at, s.sequence, s.added_by`

const tokenColumns = `t.purpose, t.hash, t.subject, coalesce(t.user_id::text, ''), t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at, t.sequence, t.added_by` //nolint:gosec // names of columns

// userRow receives userColumns or maybeUserColumns.
type userRow struct {
	u                                  store.User
	userMetadata, appMetadata          []byte
	emailVerified, phoneVerified       pgtype.Timestamptz
	created, updated, signedIn, banned pgtype.Timestamptz
	acceptedUntil                      pgtype.Timestamptz
	identities, claims                 []byte
}

func (r *userRow) into() []any { return slices.Concat([]any{&r.u.ID}, r.facts()) }

// facts receives userFacts.
func (r *userRow) facts() []any {
	u := &r.u
	return []any{
		(*zeronull.Text)(&u.Email), &r.emailVerified, (*zeronull.Text)(&u.Phone), &r.phoneVerified, &u.FullName, &r.userMetadata, &r.appMetadata, &u.Roles, &u.MFAEnabled,
		&r.created, &r.updated, &r.signedIn, &r.banned, &u.Revision, &u.CredentialRevision, &r.identities, (*zeronull.Text)(&u.Handle),
		&u.Sequence, &u.PasswordSequence, &u.PasswordAddedBy, &u.EmailSequence, &u.EmailAddedBy, &u.EmailVerifiedSequence, &u.EmailVerifiedAddedBy,
		&u.PhoneSequence, &u.PhoneAddedBy, &u.PhoneVerifiedSequence, &u.PhoneVerifiedAddedBy,
		&u.AcceptedSequence, &r.acceptedUntil,
	}
}

// user returns the row's user. It may be called once for each row.
func (r *userRow) user() (store.User, error) {
	u := &r.u
	u.EmailVerifiedAt, u.PhoneVerifiedAt = at(r.emailVerified), at(r.phoneVerified)
	u.CreatedAt, u.UpdatedAt, u.LastSignInAt, u.BannedUntil = at(r.created), at(r.updated), at(r.signedIn), at(r.banned)
	u.AcceptedUntil = at(r.acceptedUntil)
	for _, part := range []struct {
		raw  []byte
		into any
	}{{r.userMetadata, &u.UserMetadata}, {r.appMetadata, &u.AppMetadata}, {r.identities, &u.Identities}, {r.claims, &u.Claims}} {
		if len(part.raw) == 0 || string(part.raw) == "{}" {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return store.User{}, fmt.Errorf("pgstore: user %s: %w", u.ID, err)
		}
	}
	for i := range u.Identities {
		id := &u.Identities[i]
		id.CreatedAt, id.LastSignInAt = id.CreatedAt.UTC(), utc(id.LastSignInAt)
	}
	return *u, nil
}

// asKept is user with the metadata as raw JSON. It may be called once for each row.
func (r *userRow) asKept() (row store.UserRow, err error) {
	for _, part := range []struct {
		raw  *[]byte
		into *json.RawMessage
	}{{&r.userMetadata, &row.UserMetadataJSON}, {&r.appMetadata, &row.AppMetadataJSON}} {
		switch {
		case len(*part.raw) == 0 || string(*part.raw) == "null":
			*part.into = json.RawMessage("{}")
		case (*part.raw)[0] != '{':
			return row, fmt.Errorf("pgstore: user %s: metadata are no object", r.u.ID)
		default:
			*part.into = *part.raw
		}
		*part.raw = nil
	}
	row.User, err = r.user()
	return row, err
}

// sessionRow receives sessionColumns.
type sessionRow struct {
	s                                           store.Session
	counter                                     int64
	rotated, created, active, idle, ends, ended pgtype.Timestamptz
	amr                                         []byte
}

func (r *sessionRow) into() []any {
	s := &r.s
	return []any{&s.ID, &s.UserID, &r.counter, &r.rotated, &s.AAL, &r.amr, &r.created, &r.active, &r.idle, &r.ends, &s.IP, &s.UserAgent, &s.Device, &r.ended, &s.Sequence, &s.AddedBy}
}

func (r *sessionRow) session() (store.Session, error) {
	s := r.s
	s.Counter = uint32(r.counter) //nolint:gosec // written from one
	s.RotatedAt, s.CreatedAt, s.LastActiveAt, s.IdleUntil, s.ExpiresAt = at(r.rotated), at(r.created), at(r.active), at(r.idle), at(r.ends)
	var err error
	if s.AMR, err = parseProofs(r.amr); err != nil {
		return store.Session{}, fmt.Errorf("pgstore: session %s: %w", s.ID, err)
	}
	return s, nil
}

// liveAt reports whether the session is live.
func (r *sessionRow) liveAt(now time.Time) bool {
	s := store.Session{IdleUntil: at(r.idle), ExpiresAt: at(r.ends)}
	return !r.ended.Valid && now.Before(s.End())
}

// andUser receives sessionColumns, userFacts and more.
func (r *sessionRow) andUser(u *userRow, more ...any) []any {
	return slices.Concat(r.into(), u.facts(), more)
}

// both returns the session and the user of a row.
func (r *sessionRow) both(ur *userRow) (store.Session, store.User, error) {
	ur.u.ID = r.s.UserID
	u, err := ur.user()
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	s, err := r.session()
	return s, u, err
}

// tokenRow receives tokenColumns.
type tokenRow struct {
	t                             store.Token
	created, expires, codeExpires pgtype.Timestamptz
}

func (r *tokenRow) into() []any {
	t := &r.t
	return []any{(*string)(&t.Purpose), &t.Hash, &t.Subject, &t.UserID, &t.Data, &r.created, &r.expires, &t.MaxAttempts, &t.Attempts, &t.Code, &r.codeExpires, &t.Sequence, &t.AddedBy}
}

func (r *tokenRow) token() store.Token {
	t := r.t
	t.CreatedAt, t.ExpiresAt, t.CodeExpiresAt = at(r.created), at(r.expires), at(r.codeExpires)
	return t
}

func tokenOf(row pgx.CollectableRow) (store.Token, error) {
	var r tokenRow
	err := row.Scan(r.into()...)
	return r.token(), err
}

// forever is returned for 'infinity', which an operator may write as the end of a ban.
// The zero time would mean no ban.
var forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// at returns a time, or the zero time for null and '-infinity'.
func at(t pgtype.Timestamptz) time.Time {
	switch {
	case !t.Valid || t.InfinityModifier == pgtype.NegativeInfinity:
		return time.Time{}
	case t.InfinityModifier == pgtype.Infinity:
		return forever
	}
	return t.Time.UTC()
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// parseProofs reads a session's authentication methods. Most sessions have one; its
// only form in jsonb is read without the slower JSON decoder.
func parseProofs(raw []byte) ([]store.AMR, error) {
	if one, ok := strings.CutPrefix(string(raw), `[{"method": "`); ok {
		method, rest, _ := strings.Cut(one, `", "timestamp": `)
		number, ok := strings.CutSuffix(rest, "}]")
		if at, err := strconv.ParseInt(number, 10, 64); ok && err == nil && !strings.ContainsAny(method, `"\`) {
			return []store.AMR{{Method: method, Timestamp: at}}, nil
		}
	}
	var list []store.AMR
	err := json.Unmarshal(raw, &list)
	return list, err
}
