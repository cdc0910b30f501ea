package auth

import "net/http"

// soleCookie is the cookie of that name, or nil. Of two none is believed: another
// host of the site, or a path below, may have planted one of them.
func soleCookie(r *http.Request, name string) *http.Cookie {
	if all := r.CookiesNamed(name); len(all) == 1 {
		return all[0]
	}
	return nil
}
