package pages_test

import (
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDocumentedProgram compiles and runs the program in docs/pages.md, and signs up in it.
func TestDocumentedProgram(t *testing.T) {
	doc, err := os.ReadFile("../docs/pages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(doc), "```go\npackage main\n")
	program, _, ended := strings.Cut(program, "```")
	if !found || !ended || !strings.Contains(program, "pages.") {
		t.Fatal("docs/pages.md has no program with pages")
	}
	program = "package main\n" + program
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	host := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(file, []byte(strings.Replace(program, "127.0.0.1:8080", host, 1)), 0o600); err != nil { //nolint:gosec // a folder of the test's
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, file)
	build.Dir = ".." // the file is part of this module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: 10 * time.Second}
	res := until(t, func() (*http.Response, error) { return client.Get("http://" + host + "/notes") }) //nolint:noctx // it has a timeout
	defer func() { _ = res.Body.Close() }()
	if res.Request.URL.Path != "/account/sign-in" {
		t.Fatalf("without a session: %s", res.Request.URL)
	}
	res, err = client.PostForm("http://"+host+"/account/sign-up?return_to=/notes", url.Values{"email": {address}, "password": {password}}) //nolint:noctx // it has a timeout
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/account/email/code" || res.Request.URL.Query().Get("return_to") != "/notes" {
		t.Fatalf("%s %s", res.Status, res.Request.URL)
	}
}

// until repeats a request until the server responds.
func until(t *testing.T, try func() (*http.Response, error)) *http.Response {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.After(20 * time.Second)
	for {
		res, err := try()
		if err == nil {
			return res
		}
		select {
		case <-over:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}
