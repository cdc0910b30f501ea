#!/usr/bin/env bash
# The browser tests of the pages need axe-core, and the types of the dashboard's module
# are checked with TypeScript; both need npm. Use what is there,
# install it where that can be done without asking, or say what is missing.
set -euo pipefail

cd "$(dirname "$0")/../internal/axetest"
if [ node_modules/axe-core/axe.min.js -nt package-lock.json ] && [ -e node_modules/typescript/bin/tsc ]; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "browser tests: no npm found; installing the packages nodejs and npm with apt-get"
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
	else
		echo "browser tests: npm is missing, and it cannot be installed from here." >&2
		echo "Install Node.js 20 or later and run make test again." >&2
		exit 1
	fi
fi
npm ci --no-audit --no-fund --loglevel=error
touch node_modules/axe-core/axe.min.js
