// Package chaos holds tests that run several real servers on real Postgres and break
// something: a server, the database, its primary, the disk. They need the build tag
// faults; see README.md and make test-faults.
package chaos
