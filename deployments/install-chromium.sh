#!/usr/bin/env bash
# Make a Chromium available to the tests: the system's where there is one (or apt can install it),
# else the one that Playwright downloads. Usage: install-chromium.sh PATH/TO/VENV/bin
set -euo pipefail
bin=$1
if [ -x "${TIDEMARK_CHROMIUM:-/usr/bin/chromium}" ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "Installing Chromium with apt …"
    export DEBIAN_FRONTEND=noninteractive
    # Of two that run apt at once, one would fail. What apt starts does not inherit the lock.
    locked() { flock --close "$(dirname "$0")" "$@"; }
    # A name that nobody can foresee: this runs as root.
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if (locked apt-get update && locked apt-get install --yes --no-install-recommends chromium) > "$log" 2>&1; then
        exit 0
    fi
    tail -n 5 "$log"
fi
echo "Installing Playwright's own Chromium …"
"$bin/playwright" install chromium
