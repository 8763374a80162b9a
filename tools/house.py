"""Run the project's own checks, and print each fault as ``file:line: description``."""

from __future__ import annotations

import importlib
import sys

# Modules with a function ``faults() -> list[str]``.
CHECKS = (
    "tools.limits",
    "tools.cycles",
    "tools.walks",
    "tools.words",
    "tools.reliable_tests",
    "tools.density_lint",
)


def main() -> int:
    """Return the exit code: 1 if a check found a fault."""
    found: list[str] = []
    for name in CHECKS:
        found += importlib.import_module(name).faults()
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
