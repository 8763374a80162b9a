#!/usr/bin/env bash
# Make Caddy available to the tests of the reverse proxy, with apt where it is missing. No server is
# started: each run of the tests has one of its own, on loopback.
set -euo pipefail
if command -v caddy > /dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "Caddy is not installed; the tests of the reverse proxy will be skipped." >&2
    exit 0
fi
echo "Installing Caddy with apt …"
export DEBIAN_FRONTEND=noninteractive
# Of two that run apt at once, one would fail. What apt starts does not inherit the lock.
locked() { flock --close "$(dirname "$0")" "$@"; }
# A name that nobody can foresee: this runs as root.
log=$(mktemp)
# Debian's package would start a server on port 80.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
    trap 'rm -f "$log" "$policy"' EXIT
else
    trap 'rm -f "$log"' EXIT
fi
if ! (locked apt-get update && locked apt-get install --yes --no-install-recommends caddy) > "$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "Caddy cannot be had; the tests of the reverse proxy will be skipped." >&2
fi
