// Command clientgen generates the clients from the committed OpenAPI documents: the types
// of the npm package, both halves of its admin client, and the admin half of package
// authclient. Run it in the root of the repository:
//
//	go run ./internal/clientgen          # writes the files
//	go run ./internal/clientgen -check   # fails if a file is out of date
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if a file is out of date")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "clientgen:", err)
		os.Exit(1)
	}
}

// run writes the files below the root of the repository, or compares them.
func run(root string, check bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for _, name := range sorted(files) {
		at := filepath.Join(root, filepath.FromSlash(name))
		if old, err := os.ReadFile(at); err == nil && bytes.Equal(old, files[name]) { //nolint:gosec // of the repository
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date: go run ./internal/clientgen", name)
		}
		if err := os.WriteFile(at, files[name], 0o644); err != nil { //nolint:gosec // source code
			return err
		}
	}
	return nil
}

// generate returns the text of each generated file.
func generate(root string) (map[string][]byte, error) {
	people, err := readDocument(filepath.Join(root, "openapi.json"))
	if err != nil {
		return nil, err
	}
	admin, err := readDocument(filepath.Join(root, "admin", "openapi.json"))
	if err != nil {
		return nil, err
	}
	if err := admin.check(); err != nil {
		return nil, err
	}
	calls := make([]*call, len(names))
	for i, n := range names {
		if calls[i], err = admin.read(n); err != nil {
			return nil, err
		}
	}
	files := map[string][]byte{"clients/js/src/wire.ts": people.wire()}
	admin.typeScript(calls, files)
	if files["authclient/admin_generated.go"], err = admin.goClient(calls); err != nil {
		return nil, err
	}
	return files, nil
}
