// Admin is the back office of a small magazine with a shop: editors publish articles,
// support refunds orders and helps users with their accounts, and a nightly job deletes
// accounts that were never verified.
//
//	go run ./examples/admin -owner ada@example.com
//
// Sign up as ada@example.com and open the link in the inbox at /dev/inbox: after the next
// refresh Ada is the owner and can give roles to other users (see the README of the
// project). The job needs an API key, which an owner creates:
//
//	curl http://127.0.0.1:8080/auth/v1/admin/keys -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
//		-d '{"name":"nightly job","scopes":["auth.users.read","auth.users.delete"]}'
//	SHOP_KEY=sk_… go run ./examples/admin -clean-up http://127.0.0.1:8080/auth/v1
//
// Everything is in memory and lost when the process ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/memstore"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	owner := flag.String("owner", "", "email address of the first owner, once it is verified")
	service := flag.String("clean-up", "", "run the nightly job against the service at this URL, with the key in SHOP_KEY")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *service != "" {
		err = nightly(ctx, *service, os.Getenv("SHOP_KEY"))
	} else {
		err = run(ctx, *addr, *owner)
	}
	if err != nil {
		log.Fatal(err) //nolint:gocritic // there is nothing left to stop
	}
}

func nightly(ctx context.Context, service, key string) error {
	c, err := authclient.NewAdmin(service, key)
	if err != nil {
		return err
	}
	n, err := cleanUp(ctx, c, time.Now().Add(-30*24*time.Hour))
	fmt.Printf("%d accounts deleted\n", n)
	return err
}

func run(ctx context.Context, addr, owner string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String()
	first := &firstOwner{address: owner}
	a, err := auth.New(ctx, memstore.New(),
		auth.WithDevMode(), // ephemeral secret, http on loopback, messages to an inbox
		auth.WithBaseURL(url+"/auth/v1"),
		auth.WithHooks(auth.Hooks{OnEvent: first.onEvent}),
	)
	if err != nil {
		return err
	}
	// A real back office requires a second factor: remove RequireMFA.
	adm, err := newAdmin(ctx, a, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		return err
	}
	first.adm.Store(adm)
	mux := routes(a, adm)
	mux.Handle("/dev/", a.Inbox())
	fmt.Printf("POST to %s/auth/v1/signup; messages arrive at %s/dev/inbox\n", url, url)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
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
