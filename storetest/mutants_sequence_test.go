package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/authmount/auth/store"
)

// rewriter is a store that returns other origins than it keeps.
type rewriter struct {
	base
	user    func(*store.User)
	session func(*store.Session)
	token   func(*store.Token)
}

func (s rewriter) edit(u *store.User) {
	if s.user != nil {
		s.user(u)
	}
}

func (s rewriter) User(ctx context.Context, key store.UserKey) (store.User, error) {
	u, err := s.Store.User(ctx, key)
	s.edit(&u)
	return u, err
}

func (s rewriter) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	s.edit(&u)
	return u, err
}

func (s rewriter) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	sess, u, err := s.Store.Session(ctx, id, now)
	if s.session != nil {
		s.session(&sess)
	}
	s.edit(&u)
	return sess, u, err
}

func (s rewriter) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	t, err := s.Store.PeekToken(ctx, p, hash, now)
	if s.token != nil {
		s.token(&t)
	}
	return t, err
}

const (
	orderRaised  = "order/a change raises the sequence once, and everything that it adds has the raised value"
	orderAddedBy = "order/what is added names the session or enrolment token that added it"
	orderNew     = "order/a new user begins at 1, with everything that comes with it"
	orderNothing = "order/what adds nothing leaves the sequence as it is"
	orderClocks  = "order/sessions from a session on end, and none before, at any time of a caller"
)

func sequenceMutants() map[string]mutant {
	of := func(check string, m rewriter) mutant {
		return caught(check, func(b base) store.Store { m := m; m.base = b; return m })
	}
	users := func(check string, edit func(*store.User)) mutant { return of(check, rewriter{user: edit}) }
	all := map[string]mutant{
		"sequences are times": {func(s store.Store) store.Store {
			return rewriter{base: base{s}, session: func(s *store.Session) { s.Sequence = s.CreatedAt.UnixMicro() }}
		}, []string{orderRaised, "order/what comes later has the larger sequence at any time of a caller", "order/parallel changes have sequences of their own"}},
		"sequences are revisions":            users(orderRaised, func(u *store.User) { u.Sequence = u.CredentialRevision }),
		"sequences are raised by everything": users(orderNothing, func(u *store.User) { u.Sequence = u.Revision }),
		"sequences begin at 0":               users(orderNew, func(u *store.User) { u.Sequence-- }),
		"identities have no origin": users(orderRaised, func(u *store.User) {
			for i := range u.Identities {
				u.Identities[i].Origin = store.Origin{}
			}
		}),
		"identities linked again are new": users(orderRaised, func(u *store.User) {
			for i := range u.Identities {
				u.Identities[i].Sequence = u.Sequence
			}
		}),
		"removed fields keep their sequence": users(orderRaised, func(u *store.User) { u.PhoneSequence = max(u.PhoneSequence, 2) }),
		"verifying is setting":               users(orderRaised, func(u *store.User) { u.EmailSequence = max(u.EmailSequence, u.EmailVerifiedSequence) }),
		"every token raises":                 of(orderRaised, rewriter{token: func(t *store.Token) { t.Sequence++ }}),
		"sessions name no one":               of(orderAddedBy, rewriter{session: func(s *store.Session) { s.AddedBy = 0 }}),
		"enrolment tokens name no one":       of(orderAddedBy, rewriter{token: func(t *store.Token) { t.AddedBy = 0 }}),
		"passwords name no one":              users(orderAddedBy, func(u *store.User) { u.PasswordAddedBy = 0 }),
		"the authority is forgotten": {edits(func(s store.Store, c *store.Change) {
			if ref := c.By.Session; ref != nil {
				if _, _, err := s.Session(context.Background(), ref.ID, c.Now); err == nil {
					c.By = system
				}
			}
		}), []string{orderAddedBy, "second factors/enabling a factor and replacing recovery codes raise the sequence"}},
		"every token is an authority": caught(orderAddedBy, func(b base) store.Store { return anyToken{b} }),
		"another user's session is an authority": users(orderAddedBy, func(u *store.User) {
			if u.PasswordAddedBy == 0 {
				u.PasswordAddedBy = 2
			}
		}),
		"refused changes raise the sequence": caught("order/a refused change raises no sequence", func(b base) store.Store { return refusedRaises{b} }),
		"sessions end from a time on":        caught(orderClocks, func(b base) store.Store { return fromTime{b} }),
		"sessions end from a session on, without it": caught(orderClocks, func(b base) store.Store {
			return editsRevocation{b, func(f *store.SessionFilter) {
				if f.FromSequence > 0 {
					f.FromSequence++
				}
			}}
		}),
		"patches end all sessions":            caught(orderClocks, patched(func(p *store.UserPatch) { p.Revoke = &store.SessionFilter{} })),
		"parallel changes share a sequence":   users("order/parallel changes have sequences of their own", func(u *store.User) { u.PasswordSequence = min(u.PasswordSequence, 2) }),
		"devices seen by late clocks are not": caught("order/a session that a late clock creates is kept, and its device remembered", func(b base) store.Store { return lateDevices{b} }),
		"handles fold case":                   caught("order/an account is found by its handle, and no other has it", func(b base) store.Store { return foldsHandles{b} }),
		"handles are no key":                  caught("order/an account is found by its handle, and no other has it", func(b base) store.Store { return noHandles{b} }),
	}
	return all
}

// anyToken accepts a login token as an enrolment token.
type anyToken struct{ base }

func (s anyToken) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if err == nil && c.By.Token != nil && c.By.Token.Purpose != store.PurposeEnroll {
		c.By = system
		list, _ := s.Sessions(ctx, c.UserID, c.Now)
		for _, own := range list {
			c.By = store.Authority{Session: &store.SessionRef{ID: own.ID, UserID: own.UserID}}
		}
		return s.Store.UpdateUser(ctx, c)
	}
	return u, err
}

// refusedRaises adds something before it refuses.
type refusedRaises struct{ base }

func (s refusedRaises) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	if errors.Is(err, store.ErrStale) {
		_, _ = s.Store.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.UserID, Patch: store.UserPatch{PasswordHash: c.Patch.PasswordHash}})
	}
	return u, err
}

// editsRevocation revokes by another filter.
type editsRevocation struct {
	base
	edit func(*store.SessionFilter)
}

func (s editsRevocation) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	s.edit(&c.Filter)
	return s.Store.RevokeSessions(ctx, c)
}

// fromTime revokes sessions from the time of the session on.
type fromTime struct{ base }

func (s fromTime) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	from := c.Filter.FromSequence
	if from == 0 {
		return s.Store.RevokeSessions(ctx, c)
	}
	list, err := s.Sessions(ctx, c.UserID, c.Now)
	if err != nil {
		return nil, err
	}
	var since time.Time
	for _, own := range list {
		if own.Sequence == from {
			since = own.CreatedAt
		}
	}
	ended := []string{}
	for _, own := range list {
		if own.CreatedAt.Before(since) {
			continue
		}
		c.Filter = store.SessionFilter{ID: own.ID}
		ids, err := s.Store.RevokeSessions(ctx, c)
		if err != nil {
			return nil, err
		}
		ended = append(ended, ids...)
	}
	return ended, nil
}

// lateDevices keeps the devices with the latest times instead of those added last.
type lateDevices struct{ base }

func (s lateDevices) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if c.KeepSessions > 0 {
		c.Session.Device = ""
	}
	return s.Store.CreateSession(ctx, c)
}

type foldsHandles struct{ base }

func (s foldsHandles) User(ctx context.Context, key store.UserKey) (store.User, error) {
	if key.Handle != "" && key.Handle[0] == 'z' {
		key.Handle = "Z" + key.Handle[1:]
	}
	return s.Store.User(ctx, key)
}

type noHandles struct{ base }

func (s noHandles) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	c.User.Handle = ""
	return s.Store.CreateUser(ctx, c)
}

// completionMutants are wrong about the effects of the use of a factor.
func completionMutants() map[string]mutant {
	group := func(name string) []string {
		return []string{"second factors/enabling " + name, "second factors/a use " + name, "second factors/a recovery code " + name}
	}
	done := func(checks []string, edit func(*store.Completion)) mutant {
		return mutant{func(s store.Store) store.Store {
			f, _ := store.Capability[store.FactorStore](s)
			return completes{factorBase{base{s}, f}, edit}
		}, checks}
	}
	created := func(edit func(*store.NewSession)) func(*store.Completion) {
		return func(c *store.Completion) {
			if c.Create != nil {
				n := *c.Create
				edit(&n)
				c.Create = &n
			}
		}
	}
	everything, refused := group("completes everything at once"), group("that is refused changes nothing")
	of := func(check string, broken func(factorBase) store.Store) mutant {
		return caught(check, func(b base) store.Store {
			f, _ := store.Capability[store.FactorStore](b.Store)
			return broken(factorBase{b, f})
		})
	}
	const (
		several    = "second factors/an account has several factors of a kind only if the kind says so"
		credential = "second factors/a credential belongs to one factor of all accounts"
	)
	all := map[string]mutant{
		"a completion redeems no token":    done(append(group("raises a session and uses up a token"), everything...), func(c *store.Completion) { c.Redeem = nil }),
		"a completion raises no session":   done(group("raises a session and uses up a token"), func(c *store.Completion) { c.Raise = nil }),
		"a completion creates no session":  done(everything, func(c *store.Completion) { c.Create = nil }),
		"a completion keeps all sessions":  done(everything[1:], created(func(n *store.NewSession) { n.KeepSessions = 0 })),
		"a completion trusts no device":    done(everything, created(func(n *store.NewSession) { n.TrustUntil = time.Time{} })),
		"a completion reports no device":   done(everything, created(func(n *store.NewSession) { n.OnNewDevice.Made = nil })),
		"a completion reports no ends":     done(everything, created(func(n *store.NewSession) { n.Ended = nil })),
		"a completion allows a new device": done(refused, created(func(n *store.NewSession) { n.OnNewDevice.Refuse = false })),
		"a completion allows one factor":   done(refused, created(func(n *store.NewSession) { n.Session.AAL = store.LevelAAL2 })),
		"a completion is two changes": {func(s store.Store) store.Store {
			f, _ := store.Capability[store.FactorStore](s)
			return twoChanges{factorBase{base{s}, f}}
		}, append([]string{"second factors/a use that is refused changes nothing"}, "second factors/a recovery code that is refused changes nothing")},
		"every kind may be there once":          of(several, func(b factorBase) store.Store { return editsFactor{b, func(f *store.Factor) { f.Several = false }} }),
		"every kind may be there often":         of(several, func(b factorBase) store.Store { return editsFactor{b, func(f *store.Factor) { f.Several = true }} }),
		"every factor is required":              of(several, func(b factorBase) store.Store { return editsFactor{b, func(f *store.Factor) { f.Required = true }} }),
		"no factor is required":                 of(several, func(b factorBase) store.Store { return editsFactor{b, func(f *store.Factor) { f.Required = false }} }),
		"credentials may be there often":        of(credential, func(b factorBase) store.Store { return editsFactor{b, func(f *store.Factor) { f.Credential = nil }} }),
		"pending factors raise the sequence":    of("second factors/enabling a factor and replacing recovery codes raise the sequence", func(b factorBase) store.Store { return pendingRaises{b} }),
		"factors that come later begin at 1":    of("second factors/clocks that differ change no order of factors", func(b factorBase) store.Store { return editsOrigins{b, 1} }),
		"factors of new users begin at 0":       of("second factors/factors that come with a user begin at 1", func(b factorBase) store.Store { return editsOrigins{b, 0} }),
		"sessions by order end up to a time":    caught("session lists/every session ends that was created before, and none after, at any time of a caller", func(b base) store.Store { return upToTime{b, capability[store.AdminStore](b)} }),
		"the order of sessions begins too late": caught("session lists/every session ends that was created before, and none after, at any time of a caller", func(b base) store.Store { return ordersLate{b, capability[store.AdminStore](b)} }),
	}
	return all
}

// completes completes something else.
type completes struct {
	factorBase
	edit func(*store.Completion)
}

func (s completes) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	s.edit(&c.Completion)
	return s.FactorStore.EnableFactor(ctx, c)
}

func (s completes) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	s.edit(&c.Completion)
	return s.FactorStore.UseFactor(ctx, c)
}

func (s completes) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (store.FactorResult, error) {
	s.edit(&c.Completion)
	return s.FactorStore.UseRecoveryCode(ctx, c)
}

// twoChanges uses the factor, and then creates the session.
type twoChanges struct{ factorBase }

func (s twoChanges) then(ctx context.Context, c store.Change, userID string, done store.Completion, r store.FactorResult, err error) (store.FactorResult, error) {
	if err != nil || done.Create == nil {
		return r, err
	}
	n := *done.Create
	n.Session.UserID = userID
	r.User, err = s.CreateSession(ctx, store.CreateSession{Change: change(c.Now), NewSession: n})
	return r, err
}

func (s twoChanges) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	done := c.Completion
	c.Create = nil
	r, err := s.FactorStore.UseFactor(ctx, c)
	return s.then(ctx, c.Change, c.UserID, done, r, err)
}

func (s twoChanges) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (store.FactorResult, error) {
	done := c.Completion
	c.Create = nil
	r, err := s.FactorStore.UseRecoveryCode(ctx, c)
	return s.then(ctx, c.Change, c.UserID, done, r, err)
}

// editsFactor stores another factor.
type editsFactor struct {
	factorBase
	edit func(*store.Factor)
}

func (s editsFactor) PutFactor(ctx context.Context, c store.PutFactor) error {
	s.edit(&c.Factor)
	return s.FactorStore.PutFactor(ctx, c)
}

// dropsRecovery removes the recovery codes with every factor.
type dropsRecovery struct{ factorBase }

func (s dropsRecovery) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	u, err := s.FactorStore.RemoveFactor(ctx, c)
	if err == nil {
		_ = s.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: change(c.Now), UserID: c.UserID})
	}
	return u, err
}

// pendingRaises raises the sequence by an enrolment that is not complete.
type pendingRaises struct{ factorBase }

func (s pendingRaises) PutFactor(ctx context.Context, c store.PutFactor) error {
	err, hash := s.FactorStore.PutFactor(ctx, c), "x"
	if err == nil {
		_, err = s.UpdateUser(ctx, store.UpdateUser{Change: change(c.Now), UserID: c.Factor.UserID, Patch: store.UserPatch{PasswordHash: &hash}})
	}
	return err
}

// editsOrigins reads one sequence for all factors.
type editsOrigins struct {
	factorBase
	sequence int64
}

func (s editsOrigins) Factors(ctx context.Context, userID string) (store.Factors, error) {
	fs, err := s.FactorStore.Factors(ctx, userID)
	for i := range fs.List {
		fs.List[i].Sequence = s.sequence
	}
	return fs, err
}

// upToTime revokes sessions that were created up to the time of the change.
type upToTime struct {
	base
	store.AdminStore
}

func (s upToTime) EndEverySession(ctx context.Context, c store.EndEverySession) (n int, err error) {
	list, err := s.ListSessions(ctx, store.SessionQuery{Now: c.Now, Limit: 1000})
	for _, sess := range list {
		if sess.CreatedAt.After(c.At) {
			continue
		}
		ids, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: change(c.Now), UserID: sess.UserID, Filter: store.SessionFilter{ID: sess.ID}})
		if err != nil {
			return n, err
		}
		n += len(ids)
	}
	return n, err
}

// ordersLate reports the sequence of a session before there is one.
type ordersLate struct {
	base
	store.AdminStore
}

func (s ordersLate) SessionOrder(ctx context.Context) (int64, error) {
	n, err := s.AdminStore.SessionOrder(ctx)
	return max(n, 1), err
}
