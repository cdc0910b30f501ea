#!/usr/bin/env bash
# The peer tests need Node.js and the OpenID provider of internal/peertest. Use
# what is there, install it where that can be done without asking, or say what
# is missing.
set -euo pipefail

if ! command -v npm >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "peer tests: no npm found; installing the packages nodejs and npm with apt-get"
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
	else
		echo "peer tests: Node.js with npm is missing, and it cannot be installed from here." >&2
		echo "Install Node.js 20 or later and run make test-peers again." >&2
		exit 1
	fi
fi
echo "peer tests: using node $(node --version)"
cd "$(dirname "$0")/../internal/peertest"
npm ci --no-audit --no-fund --loglevel=error
