#!/usr/bin/env bash
# The tests of reverse proxies need nginx. Use the one there is, install it where that can
# be done without asking, or say what is missing.
set -euo pipefail

if path=$(command -v nginx || PATH=/usr/sbin:$PATH command -v nginx); then
	echo "proxy tests: using $path"
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "proxy tests: no nginx found; installing the package nginx-light with apt-get"
	apt-get update -qq
	# In runlevel 1 the package does not start its service: the tests run their own.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light >/dev/null
	PATH=/usr/sbin:$PATH command -v nginx
	exit 0
fi
echo "proxy tests: nginx is missing, and it cannot be installed from here." >&2
echo "Install it (Debian: apt-get install nginx-light; macOS: brew install nginx) and run make test again." >&2
exit 1
