//go:build !linux && !darwin && !windows

package sqlitestore

// fileSystem knows no network file systems here.
func fileSystem(string) string { return "" }
