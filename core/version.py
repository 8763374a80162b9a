"""The name and the version of the code that runs."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

# The name of the distribution. `tidemark` on the package index belongs to other people.
DISTRIBUTION = "tidemark-eval"


def own_version() -> str:
    """Return the version of tidemark; raise PackageNotFoundError if it is not installed."""
    return version(DISTRIBUTION)


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, in a checkout of tidemark."""
    return f"in your checkout of tidemark, run `pip install -c constraints.txt -e '.[{extra}]'`"


@cache  # a deployment asks for it once per source
def code_version() -> str:
    """Return the version of tidemark, with the commit where it runs from a checkout."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=9"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return own_version()
    return f"{own_version()} ({described.stdout.strip()})"


def explain_newer(record: bytes) -> str | None:
    """Return a message if a later version of tidemark wrote a JSON record, else None.

    Records state their version as ``code_version``, or as ``versions.tidemark``.
    """
    try:
        document = json.loads(record)
        found = document.get("code_version") or document.get("versions", {}).get("tidemark")
    except (ValueError, AttributeError):
        return None
    own = own_version()
    if not isinstance(found, str) or _numbers(found) <= _numbers(own):
        return None
    return (
        f"was written by tidemark {found}, newer than this one ({own}); use that version or a "
        "later one, or bring back the backup that was made before the upgrade"
    )


def _numbers(text: str) -> list[int]:
    """Return the numbers that a version begins with: [0, 1, 0] of "0.1.0 (57250cc)"."""
    found = re.match(r"[0-9.]*", text)
    return [int(each) for each in found[0].split(".") if each] if found else []
