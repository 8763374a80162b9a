"""Users' files: the regular files of a folder, and names that are Unicode text."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import MalformedInput


def regular_files(folder: Path) -> list[str]:
    """Return sorted relative paths of a folder's regular files, without links and hidden files."""

    def refuse(error: OSError) -> None:
        raise error

    found = []
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            file = Path(parent) / name
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                found.append(file.relative_to(folder).as_posix())
    return sorted(found)


def require_unicode(text: str, where: str) -> str:
    """Return ``text``; refuse lone surrogates, which are possible in JSON, but not in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MalformedInput(
            f"{where}: character {error.start} is a lone surrogate "
            f"(U+{ord(text[error.start]):04X}), half of a character; write the text again"
        ) from error
    return text
