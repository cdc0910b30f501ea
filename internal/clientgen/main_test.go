package main

import "testing"

// The committed clients are the ones that the documents say.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if err := run("../..", true); err != nil {
		t.Error(err)
	}
}
