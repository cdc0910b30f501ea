// Quickstart runs Authmount on the in-memory store, with a page to click
// through and an inbox for its messages. Nothing to set up, nothing kept.
package main

import (
	"cmp"
	"context"
	"embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

//go:embed index.html
var page embed.FS

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	url := "http://" + ln.Addr().String()

	provider := authtest.NewProvider(url + "/dev/provider") // stands for Google and the like; anybody can be anybody

	a, err := auth.New(context.Background(), memstore.New(),
		auth.WithDevMode(), // ephemeral secret, http on loopback, messages to an inbox
		auth.WithBaseURL(url+"/auth/v1"),
		auth.WithMail(auth.MailOptions{AppName: "Quickstart"}),
		auth.WithProvider(provider.OIDC("dev")),
	)
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())                         // every endpoint
	mux.Handle("GET /hello", a.Require(http.HandlerFunc(hello))) // yours, for people who signed in
	mux.Handle("/dev/", a.Inbox())
	mux.Handle("/dev/provider/", provider)
	mux.Handle("/", http.FileServerFS(page))

	fmt.Printf("Open %s and sign up; messages arrive at %s/dev/inbox\n", url, url)
	fmt.Println("Then: confirm the address, sign out and in, try a magic link, a forgotten password and the Dev provider.")
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(srv.Serve(ln))
}

func hello(w http.ResponseWriter, r *http.Request) {
	user := auth.ClaimsFrom(r.Context()) // the claims of the verified token
	_, _ = fmt.Fprintf(w, "Hello %s\n", cmp.Or(user.Email, user.UserID))
}
