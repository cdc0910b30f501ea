// Admin is the back-office of a small magazine with a shop: editors publish articles,
// support refunds orders and helps people with their accounts, and a nightly job
// deletes accounts that were never confirmed.
//
//	go run ./examples/admin -owner ada@example.com
//
// Sign up as ada@example.com and open the link in the inbox at /dev/inbox: from the
// next refresh on Ada is the owner, and may give somebody a role (the README of the
// project tells how). The job has an API key, which an owner makes:
//
//	curl http://127.0.0.1:8080/auth/v1/admin/keys -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
//		-d '{"name":"nightly job","scopes":["auth.users.read","auth.users.delete"]}'
//	SHOP_KEY=sk_… go run ./examples/admin -clean-up http://127.0.0.1:8080/auth/v1
//
// Everything is in memory, and gone with the process.
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
	"github.com/authmount/auth/memstore"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	owner := flag.String("owner", "", "address of the first owner, from when it is confirmed")
	cleanUp := flag.String("clean-up", "", "do the nightly job, at the service of this URL, with the key in SHOP_KEY")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := error(nil)
	if *cleanUp != "" {
		var n int
		n, err = job{service: *cleanUp, key: os.Getenv("SHOP_KEY")}.run(ctx, time.Now().Add(-30*24*time.Hour))
		fmt.Printf("%d accounts deleted\n", n)
	} else {
		err = run(ctx, *addr, *owner)
	}
	if err != nil {
		log.Fatal(err) //nolint:gocritic // there is nothing left to stop
	}
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
	// A back-office would ask its people for a second factor: leave RequireMFA out.
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
