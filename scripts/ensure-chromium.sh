#!/usr/bin/env bash
# The browser tests need Chromium. Use the one there is, install it where that
# can be done without asking, or say what is missing.
set -euo pipefail

for name in chromium chromium-browser google-chrome chrome; do
	if path=$(command -v "$name"); then
		echo "browser tests: using $path"
		exit 0
	fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "browser tests: no Chromium found; installing the package chromium with apt-get"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
	command -v chromium
	exit 0
fi
echo "browser tests: Chromium is missing, and it cannot be installed from here." >&2
echo "Install it (Debian: apt-get install chromium; macOS: brew install --cask chromium) and run make test again." >&2
exit 1
