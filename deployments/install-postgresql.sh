#!/usr/bin/env bash
# Make PostgreSQL's server programs available to the tests of the lake, with apt where they are
# missing. No server is started: each run of the tests has one of its own, on loopback.
set -euo pipefail
if compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "PostgreSQL's server is not installed; the tests of the lake will be skipped." >&2
    exit 0
fi
echo "Installing PostgreSQL with apt …"
export DEBIAN_FRONTEND=noninteractive
# Of two that run apt at once, one would fail. What apt starts does not inherit the lock.
locked() { flock --close "$(dirname "$0")" "$@"; }
# A name that nobody can foresee: this runs as root.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! (locked apt-get update && locked apt-get install --yes --no-install-recommends postgresql) > "$log" 2>&1; then
    tail -n 5 "$log" >&2
    exit 1
fi
