package pgstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

const (
	killedOn     = "AUTH_TEST_KILLED_ON" // the database of the process that is killed
	killedSecret = "the same in both processes, 32 bytes or more"
	killedSays   = "it is being sent"
)

// stuck is a mailer that never returns.
type stuck struct{}

func (stuck) Send(context.Context, auth.Message) error {
	fmt.Println(killedSays) //nolint:forbidigo // to the process that kills this one
	select {}
}

// A killed process, which never calls Close, loses no message: the next process sends it.
func TestMessageOutlivesAKill(t *testing.T) {
	if url := os.Getenv(killedOn); url != "" {
		signUpAndHang(t, url)
	}
	url := pgtest.Database(t)
	cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMessageOutlivesAKill$") //nolint:gosec // this very binary
	cmd.Env = append(os.Environ(), killedOn+"="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sending := false
	for lines := bufio.NewScanner(out); !sending && lines.Scan(); {
		sending = strings.Contains(lines.Text(), killedSays)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !sending {
		t.Fatal("the other process has sent nothing")
	}
	later := time.Now().Add(time.Hour) // its lease is over
	env := authtest.NewOn(t, unmigrated(t, url), auth.WithSecret([]byte(killedSecret)), auth.WithClock(func() time.Time { return later }))
	if m := env.Mail(t, "ada@example.com", store.KindVerifyEmail); m.Link == "" {
		t.Errorf("%+v", m)
	}
}

// signUpAndHang is the process that is killed.
func signUpAndHang(t *testing.T, url string) {
	s, err := pgstore.Open(t.Context(), url, pgstore.AutoMigrate())
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(t.Context(), s, auth.WithSecret([]byte(killedSecret)), auth.WithBaseURL(authtest.BaseURL), auth.WithMailer(stuck{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.SignUp(t.Context(), auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	select {}
}
