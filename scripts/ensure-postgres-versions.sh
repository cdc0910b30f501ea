#!/usr/bin/env bash
# The tests of a version of Postgres need its binaries: those of the npm packages
# that postgres-versions/package-lock.json names, with their checksums. Use what is
# in the cache, install it there, or say what is missing. The folder with the
# binaries of the version asked for is all that goes to the standard output.
set -euo pipefail

major=${1:?the major version, such as 17}
cd "$(dirname "$0")/postgres-versions"

say() { echo "postgres $major: $*" >&2; }

# Postgres does not run as root, so the user it runs as has to reach the cache.
if [ -n "${AUTH_TEST_POSTGRES_CACHE:-}" ]; then
	cache=$AUTH_TEST_POSTGRES_CACHE
elif [ "$(id -u)" = 0 ]; then
	cache=/var/cache/authmount/postgres-versions
else
	cache=${XDG_CACHE_HOME:-$HOME/.cache}/authmount/postgres-versions
fi

case "$(uname -s) $(uname -m)" in
"Linux x86_64") platform=linux-x64 ;;
"Linux aarch64") platform=linux-arm64 ;;
"Darwin arm64") platform=darwin-arm64 ;;
"Darwin x86_64") platform=darwin-x64 ;;
*) platform="$(uname -s) $(uname -m)" ;;
esac
package=postgres-$major-$platform
if ! grep -q "\"$package\": \"npm:" package.json; then
	say "there are no binaries of it for $platform in scripts/postgres-versions/package.json."
	exit 1
fi

bin=$cache/node_modules/$package/native/bin
# The lock is copied last: a cache that was left half full is filled anew.
if cmp -s package-lock.json "$cache/installed-lock.json" && [ -x "$bin/initdb" ]; then
	say "using $("$bin/postgres" --version) in $bin"
else
	if ! command -v npm >/dev/null; then
		say "its binaries come by npm, which is missing. Install Node.js 20 or later and run make test-pg-versions again."
		exit 1
	fi
	say "installing the binaries of all versions into $cache by npm"
	umask 022
	mkdir -p "$cache"
	rm -f "$cache/installed-lock.json"
	cp package.json package-lock.json "$cache/"
	if ! (cd "$cache" && npm ci --no-audit --no-fund --loglevel=error >&2); then
		say "npm could not install them."
		exit 1
	fi
	if ! [ -x "$bin/initdb" ]; then
		say "$package has no $bin/initdb."
		exit 1
	fi
	cp package-lock.json "$cache/installed-lock.json"
	say "using $("$bin/postgres" --version) in $bin"
fi
case "$("$bin/postgres" --version)" in
*" $major."*) echo "$bin" ;;
*)
	say "this is another version."
	exit 1
	;;
esac
