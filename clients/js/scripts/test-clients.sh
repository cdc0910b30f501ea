#!/usr/bin/env bash
# Everything about the npm package: installs what it needs, or says what is missing; then types,
# build, sizes, tests in Node, sign-in at a real OpenID provider, and applications built from the packed package in
# Chromium, and one of them in Firefox and WebKit.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$(cd ../.. && pwd)

for tool in node npm go; do
	command -v "$tool" >/dev/null || { echo "test-clients: $tool is missing" >&2; exit 1; }
done
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
	echo "test-clients: Node 20 or later is needed, this is $(node --version)" >&2
	exit 1
fi
"$repository/scripts/ensure-chromium.sh"
"$repository/scripts/ensure-engines.sh"
"$repository/scripts/ensure-postgres.sh"
"$repository/scripts/ensure-peers.sh"

npm ci --no-audit --no-fund

# One build of the server for all that start it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$repository" && go build -o "$work/server" ./examples/server)
export AUTHMOUNT_SERVER="$work/server"

(cd "$repository" && go run ./internal/clientgen -check)
npm run build
npm run sizes
npm test
npm run test:tabs
node --test test/server/*.test.mjs test/admin/*.test.mjs test/frameworks/*.test.mjs
node --test --test-concurrency=1 test/apps/*.test.mjs
