"""The version of the code that runs."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path


@cache  # a deployment states it of each source
def code_version() -> str:
    """Return the version of tidemark, with the commit where it runs from a checkout."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=9"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return version("tidemark")
    return f"{version('tidemark')} ({described.stdout.strip()})"


def explain_newer(record: bytes) -> str | None:
    """Return what to say of a JSON record that a later version of tidemark wrote, else None.

    Records state their version as ``code_version``, or as ``versions.tidemark``.
    """
    try:
        document = json.loads(record)
        found = document.get("code_version") or document.get("versions", {}).get("tidemark")
    except (ValueError, AttributeError):
        return None
    own = version("tidemark")
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
