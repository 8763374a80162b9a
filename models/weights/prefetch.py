"""Get the next model's files ready while another model is scored.

A thread fetches and verifies the files from the hub, and reads them into the system's page cache.
So loading them later takes neither the network nor the disk. Errors are left to the loading, which
reports them.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from core.errors import TidemarkError
from core.settings import Settings
from models.catalogue import ModelEntry
from models.weights.cache import fetch_with_base
from models.weights.files import ADAPTER_FILES, WEIGHT_FILES
from models.weights.hub import find_cached, is_on_hub

_log = logging.getLogger(__name__)
_MOST_OF_MEMORY = 0.5  # larger files would push out what the present model needs


def prefetch(entry: ModelEntry, settings: Settings) -> threading.Thread | None:
    """Start to get a model's files ready; return the thread, or None if the model has no files."""
    if not (entry.backend.from_hub or Path(entry.location).expanduser().is_dir()):
        return None
    name = f"prefetch {entry.name}"
    thread = threading.Thread(target=_prepare, args=(entry, settings), name=name, daemon=True)
    thread.start()
    return thread


def _prepare(entry: ModelEntry, settings: Settings) -> None:
    """Fetch a model's files, and read them into the page cache; errors are only logged."""
    try:
        for folder in _folders(entry, settings):
            read_ahead(folder)
    except (TidemarkError, OSError) as error:
        _log.info("%s: not prepared (%s)", entry.name, error)


def _folders(entry: ModelEntry, settings: Settings) -> list[Path]:
    """Return the folders of a model's files, and of an adapter's base; fetch what is missing."""
    if not is_on_hub(entry):
        return [Path(entry.location).expanduser()]
    cached = find_cached(entry.location, entry.revision, entry.is_trusted)
    if cached:
        return [cached]
    fetched = fetch_with_base(entry.location, entry.revision, settings, entry.is_trusted)
    return [each.folder for _, each in fetched]


def read_ahead(folder: Path) -> int:
    """Ask the system to read a folder's weights into its page cache; return their size in bytes."""
    # Nothing is read, and 0 is returned, if they are larger than half of the memory.
    patterns = (*WEIGHT_FILES, *ADAPTER_FILES)
    paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    size = sum(path.stat().st_size for path in paths)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > _MOST_OF_MEMORY * memory or not hasattr(os, "posix_fadvise"):
        return 0
    for path in sorted(paths):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
    return size
