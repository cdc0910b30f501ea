// Package pages has ready pages for applications that the server draws: sign-in by
// password, provider, link and text message, sign-up, forgotten password, second
// factor with QR code and recovery codes, and the account with addresses, linked
// providers, devices and deletion.
//
//	a, err := auth.New(ctx, store, …, auth.WithCookies(auth.CookieOptions{}))
//	p, err := pages.New(a, pages.Options{Brand: "Notes", Accent: "#0f766e", Home: "/notes"})
//	mux.Handle("/auth/v1/", a.Handler())
//	mux.Handle("/account/", p)
//	mux.Handle("/notes", a.RequirePage(notes)) // a visitor without a session signs in first
//
// They work without scripts and are sent under a policy that lets none run. They
// are in English and German, as the visitor prefers, in light and dark, and meet
// WCAG 2.2 AA. Which ways of signing in they show follows from the settings and
// providers of the service. Templates and texts can be replaced one by one, see
// [Options.Templates] and [View].
//
// Every form is posted to the page that it is on, from this very origin only
// (CSRF), and leads on by a redirect if it went well. What went wrong is said at the
// field that it is about, with the status that the endpoint of the wire has. What a
// browser has to keep from one page to the next, such as that a password was right
// and the second factor is missing, is in a cookie that scripts cannot read, for
// twenty minutes; nothing of it is in an address. A sign-in that leads through a
// provider or a mail is bound to the browser that began it (PKCE).
//
// The addresses below the prefix, which may be linked to:
//
//	/sign-in?return_to=/notes   also /sign-up?return_to=…
//	/forgot-password
//	/                           the account; also /password, /email, /phone, /second-factor, /delete
//	/sign-out                   by POST
package pages
