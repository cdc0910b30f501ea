package auth

import (
	"context"
	"encoding/base32"
)

func (k kit) CheapPasswords() (cheap bool, err error) {
	p := k.a.passwords
	if !p.usual {
		return false, nil
	}
	p.o.Argon2id = Argon2idParams{Memory: 64, Time: 1, Threads: 1}
	return true, p.standIn()
}

func (k kit) BeginTOTP(ctx context.Context, by SessionRef) (secret string, err error) {
	_, raw, err := k.a.beginTOTP(ctx, SetupTOTPParams{Caller: Caller{UserID: by.UserID, SessionID: by.ID}})
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw), err
}
