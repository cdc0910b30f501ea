#!/usr/bin/env bash
# The clients are tried in Firefox and WebKit, too. Use those that there are, install them
# where that can be done without asking, or say what is missing.
set -euo pipefail

missing=()
command -v firefox-esr >/dev/null || command -v firefox >/dev/null || missing+=(firefox-esr)
command -v WebKitWebDriver >/dev/null || missing+=(webkit2gtk-driver)
command -v Xvfb >/dev/null || missing+=(xvfb)
if [ ${#missing[@]} = 0 ]; then
	echo "browser tests: using $(command -v firefox-esr || command -v firefox) and $(command -v WebKitWebDriver)"
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "browser tests: installing the packages ${missing[*]} with apt-get"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
	exit 0
fi
echo "browser tests: missing and not to be installed from here: ${missing[*]}" >&2
echo "Install them (Debian: apt-get install ${missing[*]}) and run make test-clients again." >&2
exit 1
