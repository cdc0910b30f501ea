package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

// apiMailer sends mail by the HTTP API of a mail service.
type apiMailer struct {
	url, key string
}

func (m apiMailer) Send(ctx context.Context, msg auth.Message) error {
	body, err := json.Marshal(map[string]string{"to": msg.To, "subject": msg.Subject, "text": msg.Text, "html": msg.HTML})
	if err != nil {
		return auth.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return auth.Permanent(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", msg.ID) // the same in every retry
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err // is retried
	}
	defer func() { _ = res.Body.Close() }()
	switch {
	case res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusUnprocessableEntity: // refused for good
		return auth.Permanent(fmt.Errorf("mail service: %s", res.Status))
	default:
		return fmt.Errorf("mail service: %s", res.Status)
	}
}

// Send mail by a service that the library does not know.
func ExampleWithMailer() {
	ctx := context.Background()
	subjects := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Subject string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			log.Print(err)
		}
		subjects <- m.Subject
	}))
	defer service.Close()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithMail(auth.MailOptions{AppName: "Notes"}),
		auth.WithMailer(apiMailer{url: service.URL, key: "key of the mail service"}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	if _, err := a.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-subjects)
	// Output: Your sign-in link for Notes
}
