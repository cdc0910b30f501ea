#!/usr/bin/env bash
# The fault tests need PgBouncer. Use the one there is, install it where that can
# be done without asking, or say what is missing.
set -euo pipefail

if path=$(command -v pgbouncer || PATH=/usr/sbin:$PATH command -v pgbouncer); then
	echo "fault tests: using $path"
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "fault tests: no PgBouncer found; installing the package pgbouncer with apt-get"
	apt-get update -qq
	# In runlevel 1 the package does not start its service: the tests run their own.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null
	PATH=/usr/sbin:$PATH command -v pgbouncer
	exit 0
fi
echo "fault tests: PgBouncer is missing, and it cannot be installed from here." >&2
echo "Install it (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer) and run make test-faults again." >&2
exit 1
