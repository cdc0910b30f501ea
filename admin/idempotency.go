package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// keptRepetitions is the time for which an Idempotency-Key is remembered.
const keptRepetitions = 24 * time.Hour

const maxIdempotencyKey = 255 // bytes

type requestKey struct{}

// once identifies a request that is carried out at most once.
type once struct {
	route, key string
	hash       []byte        // of the whole request
	head       []byte        // of the request without its body
	life       time.Duration // for how long it is remembered; 0: keptRepetitions

	// job marks a part of a job. It is remembered for the job and not for the actor, who
	// may be gone by then.
	job bool

	// asks is set if the operation itself checks whether it was done before, because the
	// store cannot report it.
	asks bool
}

// withKey reads the Idempotency-Key of a POST. carryOut enforces it.
func (m *Admin) withKey(op operation, r *http.Request) (*http.Request, error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) == 0 || r.Method != http.MethodPost {
		return r, nil
	}
	key := keys[0]
	if len(keys) > 1 || key == "" || len(key) > maxIdempotencyKey || !visible(key) {
		return r, m.kit.Invalid("Idempotency-Key", "has to be one value of up to 255 visible ASCII characters")
	}
	var head []byte
	for _, part := range []string{r.URL.Path, r.URL.RawQuery, r.Header.Get("If-Match")} {
		sum := sha256.Sum256([]byte(part))
		head = append(head, sum[:]...)
	}
	o := &once{route: op.pattern, key: key, head: head}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, o))
	if op.streams {
		return r, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return r, m.fail(auth.CodeBadJSON, err)
	}
	sum := sha256.Sum256(body)
	o.read(m, sum[:])
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// read completes the hash of a request with the digest of its body.
func (o *once) read(m *Admin, body []byte) {
	sum := sha256.Sum256(append(o.head, body...))
	o.hash = m.kit.Fingerprint(sum[:])
}

func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// onceFor returns a context for the part of a request for one account of several, which
// is carried out once.
func (m *Admin) onceFor(ctx context.Context, userID string) context.Context {
	o, _ := ctx.Value(requestKey{}).(*once)
	if o == nil {
		return ctx
	}
	return context.WithValue(ctx, requestKey{}, &once{route: o.route, key: o.key + " " + userID, hash: o.hash, life: o.life, job: o.job})
}

// idempotency returns the condition that the request is carried out once, or nil.
func (m *Admin) idempotency(ctx context.Context, a *acting) *store.Idempotency {
	o, _ := ctx.Value(requestKey{}).(*once)
	if o == nil {
		return nil
	}
	i := &store.Idempotency{Route: o.route, Key: o.key, RequestHash: o.hash, ExpiresAt: m.kit.Now().Add(cmp.Or(o.life, keptRepetitions))}
	if o.job {
		i.Actor = "job"
	} else {
		i.Actor = a.name()
	}
	return i
}

// name identifies an actor among all others, in any session.
func (a *acting) name() string {
	switch {
	case a.by.Session != nil:
		return string(store.ActorUser) + ":" + a.by.Session.UserID
	case a.by.Key != nil:
		return string(store.ActorKey) + ":" + a.by.Key.ID
	case a.key != nil: // in the options
		return "option:" + a.key.Name
	case a.by.External != "":
		return string(store.ActorExternal) + ":" + a.by.External
	}
	return string(store.ActorSystem) + ":" + a.by.System
}

// wasDone checks whether a request was carried out before. It passes a change that cannot
// succeed, because stores check the key before any other condition. The error is a
// *store.RepeatedError if it was.
func (m *Admin) wasDone(ctx context.Context, a *acting) error {
	return m.underKey(ctx, m.idempotency(ctx, a), a.by)
}

// wasDoneInJob is wasDone for a part of a job after its actor was refused: a part that was
// done before is reported as done.
func (m *Admin) wasDoneInJob(ctx context.Context) error {
	if o, _ := ctx.Value(requestKey{}).(*once); o == nil || !o.job {
		return nil
	}
	return m.underKey(ctx, m.idempotency(ctx, nil), auth.Authority{System: "job"})
}

func (m *Admin) underKey(ctx context.Context, key *store.Idempotency, by auth.Authority) error {
	if key == nil {
		return nil
	}
	c := m.kit.Change(ctx, by)
	c.Idempotency, c.IfUsers = key, []auth.UserAt{{ID: m.kit.NewID()}}
	_, err := m.store.RevokeSessions(ctx, store.RevokeSessions{Change: c, UserID: c.IfUsers[0].ID})
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// keep stores v, to be returned when the request is repeated. It is for results that the
// store cannot read later, and never holds a secret; an account is read again instead.
func (t *attempt) keep(v any) error {
	if t.change.Idempotency == nil {
		return nil
	}
	text, err := json.Marshal(v)
	t.change.Idempotency.Result = text
	return err
}

// repeated answers a repeated request as it was answered first: with the account as it is
// now, or with the value that keep stored. Errors: CodeValidationFailed if the request is
// another one; CodeIdempotencyReplayed if it returned a secret, because secrets are not
// stored.
func repeated[T any](ctx context.Context, m *Admin, op operation, targetID string, again *store.RepeatedError) (T, error) {
	var v T
	if !again.Same {
		return v, m.kit.Invalid("Idempotency-Key", "was used for another request")
	}
	if op.secret {
		return v, m.fail(auth.CodeIdempotencyReplayed, again)
	}
	if len(again.Result) > 0 {
		return v, json.Unmarshal(again.Result, &v)
	}
	if u, ok := any(&v).(*auth.User); ok {
		var err error
		if *u, err = m.store.User(ctx, store.ByID(targetID)); err != nil {
			return v, m.notFound(err)
		}
	}
	return v, nil
}
