"""Sources of the rows of a set: one for all rows, or one for each value of a column.

The source of a value is named like a subset, ``<source>:<value>``. Uncheatable Eval's monthly files
have a column ``category``, for example, whose value ``bbc_news`` may become ``set:bbc_news``.
"""

from __future__ import annotations

import unicodedata

from core.errors import StorageError, UsageError
from core.month import Month
from core.periods import split_source
from core.storage.store import Store, name_of_part, path_part
from crawlers.contract import Drop
from crawlers.imports.tables import Row, kind_of

MOST_CHARS = 64  # of a value, as of the name of a subset
MOST_BYTES = 200  # of the name of a source's folder; file systems allow 255
_JOINERS = {0x200C: "x", 0x200D: "x"}  # spelling within a word


def require_source_name(name: str, store: Store) -> None:
    """Raise UsageError for a name that no source can have on every disk, and in the warehouse."""
    # Some disks take names that differ in letter case for one. So do they with composed and
    # decomposed characters, and most allow no more than 255 bytes.
    if not name.strip():
        raise UsageError("the source needs a name; say --source NAME")
    shown = ascii(name[:MOST_CHARS])
    if name != name.strip() or not name.translate(_JOINERS).isprintable():
        raise UsageError(
            f"the source {shown} has blanks around it, or characters that are not seen; leave "
            "them out"
        )
    if unicodedata.normalize("NFC", name) != name:
        raise UsageError(
            f"the source {shown} has decomposed characters; write them composed (Unicode's NFC)"
        )
    if not all(part.strip() for part in name.split(":")):
        raise UsageError(f"the source {shown} has nothing before or after a colon; say NAME:PART")
    if len(path_part(name)) > MOST_BYTES:
        raise UsageError(
            f"the name of the source begins {shown} and is too long: its folder would have more "
            f"than {MOST_BYTES} bytes; shorten it"
        )
    for folder in store.list("corpus/source=*"):
        other = name_of_part(folder.partition("source=")[2])
        if other != name and other.casefold() == name.casefold():
            raise UsageError(
                f"the source {shown} differs only in letter case from {ascii(other)}, which is "
                "there; some disks take both for one: say that one, or another name"
            )


def source_of(row: Row, source: str, column: str | None) -> str | Drop:
    """Return the source of a row: ``source``, or with a column ``<source>:<value>``.

    Spaces around a value are cut, and the value is normalised (NFC). An unusable value is a drop
    (``no_source``), which says what was expected.
    """
    if column is None:
        return source
    value = row.values.get(column)
    if not isinstance(value, str):
        found = kind_of(value) if column in row.values else "not there"
        return _refused(row, column, f"is {found}; expected a text")
    part = unicodedata.normalize("NFC", value).strip()
    name = f"{source}:{part}"
    shown = ascii(value[:MOST_CHARS])
    if not part or not part.isprintable() or ":" in part:
        why = f"is {shown}; expected printable characters, and no colon"
    elif len(part) > MOST_CHARS or _num_bytes(name) > MOST_BYTES:
        why = f"begins {shown} and is too long; expected at most {MOST_CHARS} characters"
    elif split_source(name)[1] is not Month:
        why = f"is {shown}, the name of a period; expected another name"
    else:
        return name
    return _refused(row, column, why)


def _num_bytes(name: str) -> int:
    """Return the length of a folder's name in bytes; over the maximum for a lone surrogate."""
    try:
        return len(path_part(name))
    except StorageError:
        return MOST_BYTES + 1


def _refused(row: Row, column: str, why: str) -> Drop:
    return Drop(row.place, "no_source", f"{row.place}: column `{column}` {why}")
