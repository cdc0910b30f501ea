package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// job uses the admin endpoints of a service with a secret key. The key's scopes are its
// only permissions: auth.users.read and auth.users.delete.
type job struct {
	service string // URL of the mount
	key     string
}

// run deletes the accounts that were created before a time and have no verified address,
// and returns their number. It can be interrupted and run again at any time.
func (j job) run(ctx context.Context, before time.Time) (deleted int, err error) {
	query := url.Values{"status": {"unconfirmed"}, "created_to": {before.UTC().Format(time.RFC3339)}, "limit": {"200"}}
	for {
		var page struct {
			Users []struct {
				ID string `json:"id"`
			} `json:"users"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := j.call(ctx, http.MethodGet, "/admin/users?"+query.Encode(), nil, &page); err != nil {
			return deleted, err
		}
		for _, u := range page.Users {
			// An idempotency key makes it safe to repeat a request after its response was
			// lost.
			if err := j.call(ctx, http.MethodPost, "/admin/users/"+u.ID+"/delete", map[string]string{"reason": "never confirmed"}, nil, "clean-up-"+u.ID); err != nil {
				return deleted, err
			}
			deleted++
		}
		if page.NextCursor == nil {
			return deleted, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

func (j job) call(ctx context.Context, method, path string, body, into any, once ...string) error {
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, j.service+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+j.key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, key := range once {
		r.Header.Set("Idempotency-Key", key)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = w.Body.Close() }()
	if w.StatusCode >= 300 {
		message, _ := io.ReadAll(io.LimitReader(w.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, path, w.Status, message)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(w.Body).Decode(into)
}
