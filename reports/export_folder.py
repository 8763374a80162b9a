"""Folders that exports write: whole or not at all, each with a manifest of its files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.errors import UsageError
from core.storage import explain_disk_errors, sha256_of_file

MANIFEST = "manifest.json"


@contextmanager
def exporting(output: Path, kind: str) -> Iterator[Path]:
    """Yield an empty folder; it takes the place of ``output`` when the block ends well.

    An earlier export of the same kind is replaced, anything else is not.

    Raises:
        UsageError: at ``output`` is something else, or somebody's file lies in the earlier export.
        StorageError: the disk refuses; what was there before still is.
    """
    final = output.resolve()
    _refuse_what_is_not_ours(final, kind)
    with explain_disk_errors(str(output)):
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tmp-export-", dir=final.parent) as room:
            new, old = Path(room) / "new", Path(room) / "old"
            new.mkdir()
            yield new
            if final.exists():
                final.rename(old)
            try:
                new.rename(final)
            except OSError:
                if old.exists():
                    old.rename(final)
                raise


def write_manifest(folder: Path, kind: str, facts: Mapping[str, object]) -> None:
    """Write what an export is, and length and checksum of every file that is there by now."""
    files = {
        path.name: {"num_bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
        for path in sorted(folder.iterdir())
    }
    text = json.dumps({"export": kind, **facts, "files": files}, indent=2, ensure_ascii=True)
    path = folder / MANIFEST
    path.write_text(f"{text}\n", encoding="utf-8")
    for name in (*files, MANIFEST):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())


def _refuse_what_is_not_ours(folder: Path, kind: str) -> None:
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir():
        present = {path.name for path in folder.iterdir()}
        if present <= {MANIFEST, *_files_of(folder, kind)}:
            return
    raise UsageError(
        f"{folder} is there already and is more than an earlier export of {kind}; "
        "give another --output, or move what is there away"
    )


def _files_of(folder: Path, kind: str) -> list[str]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return list(manifest["files"]) if manifest["export"] == kind else []
    except (OSError, ValueError, KeyError, TypeError):
        return []
