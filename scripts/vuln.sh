#!/usr/bin/env bash
# Runs govulncheck. A finding fails; a database out of reach is said and passes,
# because it tells nothing about the code.
set -uo pipefail

out=$("$@" govulncheck ./... 2>&1)
status=$?
echo "$out"
if [ $status -ne 0 ] && grep -qiE 'vuln\.go\.dev|no such host|connection refused|dial tcp|fetching vulnerabilities|403 Forbidden' <<<"$out" && ! grep -q 'Vulnerability #' <<<"$out"; then
	echo "vulnerability check: the database cannot be reached from here; NOT checked"
	exit 0
fi
exit $status
