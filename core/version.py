"""The version of the code that runs."""

from __future__ import annotations

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
