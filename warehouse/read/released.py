"""Reading of releases: ``releases/<YYYY-MM>/``, with the checksums of its files in SHA256SUMS.

The extra ``releases`` writes them. A release without SHA256SUMS does not exist.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core.errors import StorageError, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from warehouse.database.schema import SNAPSHOT

FOLDER = "releases"
SUMS = "SHA256SUMS"


def list_releases(store: Store) -> list[str]:
    """Return the names (YYYY-MM) of the complete releases of a data root, sorted."""
    return [path.split("/")[1] for path in store.list(f"{FOLDER}/*/{SUMS}")]


@contextlib.contextmanager
def release_database(settings: Settings, release: str) -> Iterator[Path]:
    """Verify the checksum of a release's database and yield its path.

    ``release`` is the month of a release in the data root, or the path of a release's folder.

    Raises:
        UsageError: there is no such release.
        StorageError: the database does not match its checksum.
    """
    is_folder = Path(release).is_dir()
    store = Store(release if is_folder else settings.home)
    prefix = "" if is_folder else f"{FOLDER}/{Month(release)}/"
    if not store.exists(prefix + SUMS):
        known = list_releases(Store(settings.home))
        raise UsageError(
            f"there is no release at {store.url(prefix + SUMS)} "
            f"(released here: {', '.join(known) or 'nothing'})"
        )
    lines = store.read_bytes(prefix + SUMS).decode(errors="replace").splitlines()
    expected = [line.split()[0] for line in lines if line.endswith(f"  {SNAPSHOT}")]
    with tempfile.TemporaryDirectory(prefix="tidemark-release-") as name:
        path = Path(name) / SNAPSHOT
        with store.open(prefix + SNAPSHOT) as remote, path.open("wb") as local:
            shutil.copyfileobj(remote, local)
        if [sha256_of_file(path)] != expected:
            raise StorageError(
                f"{store.url(prefix + SNAPSHOT)} is not what {SUMS} beside it says; "
                "get the release again"
            )
        yield path
