#!/usr/bin/env bash
# Runs govulncheck. Findings fail (govulncheck exits with 3), and so does anything
# else that goes wrong, but for a database out of reach: that is said and passes,
# because it tells nothing about the code.
set -uo pipefail

out=$("$@" govulncheck ./... 2>&1)
status=$?
echo "$out"
if [ $status -ne 0 ] && [ $status -ne 3 ] && grep -q 'fetching vulnerabilities: ' <<<"$out"; then
	echo "vulnerability check: the database cannot be reached from here; NOT checked"
	exit 0
fi
exit $status
