// Package authclient is Authmount for programs that are not the auth server: services
// that verify its access tokens ([Verifier]), programs that act as a person ([Client]),
// and programs that operate it ([Admin]).
//
//	v, err := authclient.NewVerifier(ctx, "https://app.example.com")
//	mux.Handle("GET /notes", v.Require(notes, auth.HasPermission("notes.read")))
//	user := authclient.ClaimsFrom(r.Context()) // in notes
//
//	c, err := authclient.NewClient("https://app.example.com", authclient.WithAPIKey("pk_…"))
//	_, err = c.SignInWithPassword(ctx, authclient.PasswordParams{Email: email, Password: password})
//	app := &http.Client{Transport: c.Transport(nil)} // sends the token to the project's origin
//
//	adm, err := authclient.NewAdmin("https://app.example.com", os.Getenv("AUTH_SECRET_KEY"))
//	for u, err := range adm.Users(ctx, authclient.UserQuery{Role: "editor"}) { … }
//
// A context limits only the call that receives it; stored keys and sessions outlive it.
// The package sends requests only to the configured URL, and follows no redirects.
//
// # Errors
//
// Client and Admin return an [*Error] with the server's code:
//
//	if errors.Is(err, auth.CodeInvalidCredentials) { … }
//
// The Verifier returns errors of package auth, as [auth.Auth.Verify] does.
package authclient
