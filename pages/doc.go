// Package pages has ready-made pages for applications that render HTML on the server:
// sign-in with password, passkey, provider, link and text message, sign-up, forgotten
// password, second factor with QR code and recovery codes, and the account with email
// address, phone number, passkeys, linked providers, devices and deletion.
//
//	a, err := auth.New(ctx, store, …, auth.WithCookies(auth.CookieOptions{}))
//	p, err := pages.New(a, pages.Options{Brand: "Notes", Accent: "#0f766e", Home: "/notes"})
//	mux.Handle("/auth/v1/", a.Handler())
//	mux.Handle("/account/", p)
//	mux.Handle("/notes", a.RequirePage(notes)) // a visitor without a session signs in first
//
// The pages work without scripts, and their policy allows none, except the script of
// auth.WithPasskeys on pages that use passkeys. Only these need it. They are in English and
// German, as the visitor prefers, in light and dark, and meet WCAG 2.2 AA. The settings
// and providers of the service decide which sign-in methods they show. Templates and
// texts can be replaced one by one, see [Options.Templates] and [View].
//
// Every form posts to its own page, from this origin only (CSRF), and redirects on
// success. An error is shown at its field, with the status of the corresponding endpoint.
// State between two pages, such as a verified password while the second factor is
// missing, is in a cookie that scripts cannot read, for twenty minutes; none of it is in
// a URL. A sign-in through a provider or a mail is bound to the browser that started it
// (PKCE).
//
// Paths below the prefix that applications may link to:
//
//	/sign-in?return_to=/notes   also /sign-up?return_to=…
//	/forgot-password
//	/                           the account; also /password, /email, /phone, /passkeys/new, /second-factor, /delete
//	/sign-out                   by POST
package pages
