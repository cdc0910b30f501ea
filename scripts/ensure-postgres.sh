#!/usr/bin/env bash
# The tests need Postgres. Use the server that AUTH_TEST_DATABASE_URL names or
# the binaries there are, install them where that can be done without asking, or
# say what is missing.
set -euo pipefail

find_binaries() {
	local dir
	for dir in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin /usr/local/pgsql/bin 2>/dev/null | sort -rV); do
		[ -x "$dir/initdb" ] && echo "$dir" && return
	done
	command -v initdb >/dev/null && dirname "$(command -v initdb)"
}

if [ -n "${AUTH_TEST_DATABASE_URL:-}" ]; then
	echo "postgres tests: using the server that AUTH_TEST_DATABASE_URL names"
elif bin=$(find_binaries) && [ -n "$bin" ]; then
	echo "postgres tests: using throw-away clusters of $("$bin/postgres" --version) in $bin"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "postgres tests: no Postgres found; installing the package postgresql with apt-get"
	apt-get update -qq
	# The package's own cluster is not wanted.
	mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
	bin=$(find_binaries)
	echo "postgres tests: using throw-away clusters of $("$bin/postgres" --version) in $bin"
else
	echo "postgres tests: Postgres is missing, and it cannot be installed from here." >&2
	echo "Install it (Debian: apt-get install postgresql; macOS: brew install postgresql), or set" >&2
	echo "AUTH_TEST_DATABASE_URL to a server whose user may create databases and roles, and run make test again." >&2
	exit 1
fi
