// Package seal makes the key that opens admin.Room. Being internal, it can be
// imported by this module's own packages only, and the zero Key, which anybody
// can get at by reflection, opens nothing.
package seal

// Key opens admin.Room.
type Key struct{ genuine *struct{ _ byte } }

// New makes a key.
func New() Key { return Key{new(struct{ _ byte })} }

// Check panics unless New made the key.
func (k Key) Check() {
	if k.genuine == nil {
		panic("admin: Room is for Authmount's own packages")
	}
}
