// Quickstart runs Authmount with a page to try it out, an inbox for its messages and the
// dashboard. It needs no setup, and keeps its data in quickstart.db in the working directory.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/sqlitestore"
)

//go:embed index.html
var page embed.FS

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	memory := flag.Bool("memory", false, "keep the data in memory, until the program ends")
	flag.Parse()
	if err := run(*addr, *memory); err != nil {
		log.Fatal(err)
	}
}

func run(addr string, memory bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return err
	}
	url := "http://localhost:" + port // browsers create no passkeys for IP addresses

	provider := authtest.NewProvider(url + "/dev/provider") // replaces Google and other providers; anyone can sign in as anyone

	store, secret, err := open(memory)
	if err != nil {
		return err
	}
	a, err := auth.New(ctx, store,
		auth.WithDevMode(), // http on loopback, messages to an inbox
		auth.WithSecret(secret),
		auth.WithBaseURL(url+"/auth/v1"),
		auth.WithMail(auth.MailOptions{AppName: "Quickstart"}),
		auth.WithProvider(provider.OIDC("dev")),
		auth.WithPasskeys(passkey.New(passkey.Options{})),
	)
	if err != nil {
		return err
	}

	adm, err := admin.New(ctx, a, admin.Options{RequireMFA: auth.Off}) // in production every admin needs a second factor
	if err != nil {
		return err
	}
	dash, err := dashboard.New(adm, dashboard.Options{})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("/auth/v1/admin/", adm.Handler())                 // for programs
	mux.Handle("/dashboard/", dash)                              // for people
	mux.Handle("/auth/v1/", a.Handler())                         // every endpoint
	mux.Handle("GET /hello", a.Require(http.HandlerFunc(hello))) // yours, for people who signed in
	mux.Handle("/dev/", a.Inbox())
	mux.Handle("/dev/provider/", provider)
	mux.Handle("/", http.FileServerFS(page))

	link, err := dash.FirstOwnerLink(ctx)
	if err != nil && !errors.Is(err, auth.CodeRoleInUse) {
		return err
	}
	fmt.Printf("Open %s and sign up; messages arrive at %s/dev/inbox\n", url, url)
	fmt.Println("Then: verify your email address, sign out and in, try a magic link, a forgotten password, a passkey and the Dev provider.")
	if err != nil { // there has been an owner since an earlier start
		fmt.Printf("The dashboard: %s/dashboard/\n", url)
	} else {
		fmt.Printf("The dashboard: sign up, verify your email address, and open this within 30 minutes to become the owner:\n  %s\n", link)
	}
	return serve(ctx, ln, mux, a)
}

// open opens the store, and returns the secret that signs its sessions. The operating system
// closes the file when the program ends.
func open(memory bool) (auth.Store, []byte, error) {
	if memory {
		return memstore.New(), []byte(rand.Text() + rand.Text()), nil
	}
	path, err := filepath.Abs("quickstart.db")
	if err != nil {
		return nil, nil, err
	}
	secret, err := sqlitestore.DevelopmentSecret(path)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlitestore.Open(path)
	if err != nil {
		return nil, nil, err
	}
	fmt.Printf("The data is in %s, with its secret beside it; -memory stores nothing on disk.\n", path)
	return store, secret, nil
}

// serve serves until a signal arrives. Then it waits for running requests and sends the
// waiting messages.
func serve(ctx context.Context, ln net.Listener, h http.Handler, a *auth.Auth) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, a.Close(ctx))
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(end), a.Close(end))
}

func hello(w http.ResponseWriter, r *http.Request) {
	user := auth.ClaimsFrom(r.Context()) // the claims of the verified token
	_, _ = fmt.Fprintf(w, "Hello %s\n", cmp.Or(user.Email, user.UserID))
}
