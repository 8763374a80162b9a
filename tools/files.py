"""The repository's Python files, by room."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folders at the top that hold Python and are no part of the product.
NOT_PRODUCT = ("benchmarks", "tests", "tools")


@functools.cache
def list_files(pattern: str = "*.py") -> tuple[Path, ...]:
    """Return the files that git tracks or would add, as paths relative to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(name) for name in sorted(set(done.stdout.splitlines()))]
    return tuple(file for file in files if (ROOT / file).exists())


@functools.cache
def read(file: Path) -> str:
    """Return the text of a file of ``list_files``."""
    return (ROOT / file).read_text(encoding="utf-8")


def room_of(file: Path) -> str:
    """Return the folder at the top that holds a file; empty for a file at the top."""
    return file.parts[0] if len(file.parts) > 1 else ""


def is_product(file: Path) -> bool:
    """Return True if a file is part of the product; tests, benchmarks and tools are not."""
    return room_of(file) not in {"", *NOT_PRODUCT} and "tests" not in file.parts
