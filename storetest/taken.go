package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// taken checks that ids are unique within a kind of row: the second row gets a conflict
// that names the field, and the first row is unchanged.
func taken(has *bench) checks {
	all := checks{}
	for kind, field := range map[string]string{
		"user": "id", "session": "id", "session of a new user": "id", "identity": "identity", "key": "key", "job": "job", "impersonation": "id",
	} {
		if (kind == "key" && has.project == nil) || ((kind == "job" || kind == "impersonation") && has.admin == nil) {
			continue
		}
		all["the id of a "+kind+" is taken once"] = func(b *bench) {
			w := newWorld(b)
			u, other := w.person(), w.person()
			s := w.device(u.ID)
			k := w.newKey()
			var add func(second bool) error
			switch kind {
			case "user":
				nu := b.newUser("")
				w.users = append(w.users, nu.User.ID)
				add = func(second bool) error {
					if second {
						nu.User.FullName = "another"
					}
					_, err := b.create(nu)
					return err
				}
			case "session":
				s := b.newSession(u.ID)
				w.sessions = append(w.sessions, s.ID)
				add = func(second bool) error {
					if second {
						s.UserID = other.ID
					}
					_, err := b.signIn(s)
					return err
				}
			case "session of a new user":
				first, late := b.newUser(""), b.newUser("")
				w.users = append(w.users, first.User.ID, late.User.ID)
				add = func(second bool) error {
					nu, sess := first, b.newSession(first.User.ID)
					if second {
						nu, sess = late, s
						sess.UserID = late.User.ID
					}
					nu.Session = &sess
					_, err := b.create(nu)
					return err
				}
			case "identity":
				i := b.identity("q", "1")
				add = func(second bool) error {
					id := u.ID
					if second {
						id, i.ID = other.ID, b.id()
					}
					_, err := b.update(id, store.UserPatch{Link: &i})
					return err
				}
			case "key":
				late := w.newKey()
				late.Hash = k.Hash // the value that is taken
				add = func(second bool) error {
					put := k
					if second {
						put = late
					}
					_, err := b.putKey(put)
					return err
				}
			case "job":
				j := store.Job{ID: b.id(), Kind: "kind", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
				w.jobs = append(w.jobs, j.ID)
				add = func(second bool) error {
					if second {
						j.Kind = "another"
					}
					return b.admin.PutJob(b.ctx(), j)
				}
			case "impersonation":
				i := b.acts(s, other.ID)
				add = func(second bool) error {
					if second {
						i.Reason = "another"
					}
					return b.beginActing(i)
				}
			}
			b.ok(add(false))
			before := w.state()
			b.of("the second %s", kind).conflict(add(true), field)
			b.unchanged("refused", before, w.state())
		}
	}
	return all
}
