"""What importers share: which files they read, and what they refuse before they begin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.corpus import Content, Partition, list_sealed
from core.errors import MalformedInput, UsageError
from core.month import require_complete
from core.storage import Store


@dataclass(frozen=True)
class Piece:
    """What becomes one document of an image or a recording.

    Attributes:
        index: its number within the file.
        data: the bytes that are scored.
        place: where in the file it was, by names with units.
    """

    index: int
    data: bytes
    place: Mapping[str, int | float]


def require_target(partition: Partition, content: Content, store: Store) -> None:
    """Refuse a partition that nothing can be imported as.

    Raises:
        UsageError: the source has no name, the month is not over, or other months of the source
            are of another kind of content.
    """
    if not partition.source.strip():
        raise UsageError("the source needs a name; say --source NAME")
    if partition.month is not None:
        require_complete(partition.month)
    for seal in list_sealed(store, partition.source):
        if seal.content != content and seal.partition != partition:
            raise UsageError(
                f"{seal.partition} is sealed as {seal.content}, so {content} needs a source of "
                "its own: figures over the months of a source must not mix the two"
            )


def regular_files(folder: Path) -> list[str]:
    """Return the relative paths of a folder's regular files, sorted; no links, nothing hidden."""

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
    """Refuse lone surrogates: JSON and file names can hold them, but they have no UTF-8.

    Raises:
        MalformedInput: names ``where`` and the character.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MalformedInput(
            f"{where}: character {error.start} is a lone surrogate "
            f"(U+{ord(text[error.start]):04X}), half of a character; write the text out anew"
        ) from error
    return text
