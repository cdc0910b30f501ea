package auth

import (
	"context"
	"encoding/base32"
)

// CheapPasswords makes hashing cost next to nothing, for package authtest, whose
// services are there to test anything but that, and tells whether it does; costs that
// an option names stay. It is to be called before the first password.
func (k kit) CheapPasswords() (cheap bool, err error) {
	p := k.a.passwords
	if !p.usual {
		return false, nil
	}
	p.o.Argon2id = Argon2idParams{Memory: 64, Time: 1, Threads: 1}
	return true, p.standIn()
}

// BeginTOTP is Auth.SetupTOTP without the picture for people's cameras, for package
// authtest: to draw it costs more than all else that signing somebody in with a second
// factor does.
func (k kit) BeginTOTP(ctx context.Context, by SessionRef) (secret string, err error) {
	_, raw, err := k.a.beginTOTP(ctx, SetupTOTPParams{Caller: Caller{UserID: by.UserID, SessionID: by.ID}})
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw), err
}
