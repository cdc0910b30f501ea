package auth

import "github.com/authmount/auth/store"

// Whoever signs up with an address that somebody else has signed up with waits for a
// code, too, and the one that comes is of the other's account. The id that a sign-up
// returns tells them apart: it is about the account that the sign-up made.

// signUpRequest is the id that a sign-up returns, for its code to be given with: about the
// new account, or one that was made up. It is good for as long as the first
// link, since codes that are sent later prove the same sign-up.
func (a *Auth) signUpRequest(u User) string {
	if u.Phone != "" { // proving a number takes over in any case: for tries of their own
		return a.keys.Request(u.Phone, a.now().Add(a.cfg.phone.Life))
	}
	return a.keys.Request(ofSignUp(u), a.now().Add(verifyLife))
}

// signedUp tells whether an id was returned by the sign-up that made an account,
// with the address that it has.
func (a *Auth) signedUp(u User, request string) bool {
	return a.keys.ValidRequest(ofSignUp(u), request, a.now())
}

func ofSignUp(u User) string { return "sign-up " + u.ID + " " + store.EmailKey(u.Email) }
