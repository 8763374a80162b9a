"""Files by path or by address; those by address are brought to a temporary folder.

Without the extra ``import_sets``, which brings them, an address is refused.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from core.errors import UsageError
from core.plugins import import_parts
from core.settings import Settings
from core.storage.store import explain_disk_errors
from core.storage.temporary import prefix_of, prefix_of_mine, sweep

MAX_BYTES = 2**31
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True)
class Origin:
    """Origin of a file, for the manifest of an import."""

    address: str  # without query, which may hold a key
    sha256: str
    num_bytes: int
    revision: str | None = None  # the hub's commit
    etag: str | None = None  # of the site or the object store

    def describe(self) -> dict[str, object]:
        """Return the known fields."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass
class LocalFiles:
    """Files and folders on this machine; ``origins`` are those of files that were brought."""

    paths: list[Path] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)


def is_address(given: str) -> bool:
    """Return True for an address, False for a path."""
    return _SCHEME.match(given) is not None


@contextmanager
def brought(
    given: Sequence[str], settings: Settings, max_bytes: int = MAX_BYTES
) -> Iterator[LocalFiles]:
    """Yield the files of paths and addresses; downloaded files are deleted afterwards.

    Each file may have ``max_bytes`` bytes.

    Raises:
        UsageError: an address has none of the three forms, or there is no such object.
        AccessRefused: it leads to a host outside the public internet, or from https to http.
        ItemUnavailable: the file does not exist, or is larger than the limit.
        ItemFailed, SourceChanged, StorageError: the transfer failed, or the response is not a file.
    """
    found = LocalFiles()
    with explain_disk_errors(str(settings.scratch)):
        settings.scratch.mkdir(parents=True, exist_ok=True)
        sweep(settings.scratch, prefix_of("address"))
        prefix = prefix_of_mine("address")
        with tempfile.TemporaryDirectory(prefix=prefix, dir=settings.scratch) as room:
            for number, each in enumerate(given):
                if not is_address(each):
                    found.paths.append(Path(each))
                    continue
                folder = Path(room) / str(number)
                folder.mkdir()
                path, origin = _bringer(each).bring(each, folder, settings, max_bytes)
                found.origins.append(origin)
                found.paths.append(path)
            yield found


def _bringer(address: str) -> ModuleType:
    """Return the module of an extra that brings files; raise UsageError if there is none."""
    for part in import_parts("addresses"):
        return part
    raise UsageError(
        f"{ascii(address)} is an address, whose file the extra import_sets brings, and that is "
        "missing; download the file, and give its path"
    )
