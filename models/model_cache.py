"""The local cache of hub models: fetched whole and checked, listed, evicted.

It is the hub library's own cache (HF_HOME is honoured), in its own layout, so that no model is kept
twice. A file is fetched into ``blobs/<etag>.part``, which an interrupted fetch leaves and the next
one continues, and gets its name when its size and digest are the hub's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_url,
    scan_cache_dir,
    snapshot_download,
)
from huggingface_hub.errors import CacheNotFound
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers, tqdm  # type: ignore[attr-defined]
from huggingface_hub.utils.sha import git_hash

from core.errors import DiskFull, ModelLoadError
from core.settings import Settings
from core.storage import explain_disk_errors, sha256_of_file
from models.adapters import read_base
from models.hub import (
    DEFAULT_REVISION,
    TIMEOUT_S,
    HubFile,
    Listing,
    ask_hub,
    cache_folder,
    check_revision,
    endpoint_of,
    explain_failures,
    find_cached,
)
from models.model_files import ADAPTER_CONFIG

_ETAG = re.compile(r"[\w.+-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Fetched:
    """What a fetch did.

    Attributes:
        folder: of the files.
        commit: that they are of.
        num_bytes: of all of them.
        num_new_bytes: that were not in the cache.
    """

    folder: Path
    commit: str
    num_bytes: int
    num_new_bytes: int


@dataclass(frozen=True)
class CachedModel:
    """A model of the hub in the cache.

    Attributes:
        location: its hub id.
        commits: whose files are there, whole or not.
        num_bytes: that it takes on the disk, unfinished files included.
        used_at: when a file of it was last read (POSIX time), as the file system tells.
    """

    location: str
    commits: tuple[str, ...]
    num_bytes: int
    used_at: float


def open_snapshot(location: str, revision: str | None, settings: Settings) -> Path:
    """Return the folder of a hub model; it is fetched where it is not in the cache.

    A model that is in the cache is used as it is, without asking the hub: without a revision, the
    commit that was fetched last.

    Raises: as ``fetch``.
    """
    folder = find_cached(location, revision, settings.allow_pickle_weights)
    if folder is None:
        return fetch(location, revision, settings).folder
    # Many file systems do not keep the time of reading, by which the least used model is told.
    with contextlib.suppress(OSError):  # the cache may be one that we cannot write to
        file = next(folder.iterdir())
        os.utime(file, (time.time(), file.stat().st_mtime))
    return folder


def fetch(location: str, revision: str | None, settings: Settings) -> Fetched:
    """Get the files that are needed of a hub model into the cache, those that are not there yet.

    Args:
        location: hub id.
        revision: commit, tag or branch; None is the default branch as it is now.
        settings: ``sites``, ``allow_pickle_weights``, ``model_cache_bytes``.

    Raises:
        ModelLoadError: the hub does not give it (see ``ask_hub``), or gave other bytes than it
            promised.
        DiskFull: the cache's budget or the disk has no room for it; names what could be evicted.
        StorageError: the cache cannot be written.
    """
    check_revision(location, revision)
    listing = ask_hub(location, revision, settings)
    cache = cache_folder(location)
    lock = cache.parent / ".locks" / cache.name / "fetch.lock"
    with explain_disk_errors(str(cache)), explain_failures(location, revision):
        lock.parent.mkdir(parents=True, exist_ok=True)
        (cache / "blobs").mkdir(parents=True, exist_ok=True)
        with FileLock(lock):  # two runs may want the same model
            blobs = [_locate(file, listing, settings) for file in listing.files]
            missing = [blob for blob in blobs if not blob.path.exists()]
            num_new_bytes = sum(blob.size - _size_of(blob.part) for blob in missing)
            _require_room(location, num_new_bytes, settings)
            for blob in missing:
                _download(blob, location)
        folder = _link(listing, revision, settings)
    num_bytes = sum(blob.size for blob in blobs)
    return Fetched(folder, listing.commit, num_bytes, num_new_bytes)


def fetch_with_base(
    location: str, revision: str | None, settings: Settings
) -> Iterator[tuple[str, Fetched]]:
    """Fetch a model and, for an adapter, the hub model that it was made for.

    Yields:
        The location of each, and what was fetched.

    Raises: as ``fetch``.
    """
    fetched = fetch(location, revision, settings)
    yield location, fetched
    if (fetched.folder / ADAPTER_CONFIG).is_file():
        base, base_revision = read_base(fetched.folder, location)
        if not Path(base).is_dir():
            yield base, fetch(base, base_revision, settings)


@dataclass(frozen=True)
class _Blob:
    """A file of the hub, and where the cache keeps it."""

    file: HubFile
    url: str
    size: int  # 0 where the hub does not tell
    path: Path

    @property
    def part(self) -> Path:
        """Where it is while it is not whole."""
        return self.path.with_name(f"{self.path.name}.part")


def _locate(file: HubFile, listing: Listing, settings: Settings) -> _Blob:
    """Ask for a file's ETag, which names it in the cache, and its size."""
    endpoint = endpoint_of(settings)
    url = hf_hub_url(listing.location, file.name, revision=listing.commit, endpoint=endpoint)
    head = get_hf_file_metadata(url, timeout=TIMEOUT_S, endpoint=endpoint, retry_on_errors=True)
    if head.etag is None or not _ETAG.fullmatch(head.etag):
        raise ModelLoadError(f"{url}: the hub gave it no usable ETag, but {head.etag!r}")
    path = cache_folder(listing.location) / "blobs" / head.etag
    return _Blob(file, url, head.size or file.size or 0, path)


def _download(blob: _Blob, location: str) -> None:
    """Get a file, from where an interrupted fetch left it, check it and give it its name."""
    if _size_of(blob.part) > blob.size:
        blob.part.unlink()  # not of this file, or one whose size the hub does not tell
    with blob.part.open("ab") as file:
        http_get(
            blob.url,
            file,
            resume_size=file.tell(),
            headers={**build_hf_headers(), "Accept-Encoding": "identity"},
            expected_size=blob.size or None,
            displayed_filename=blob.file.name,
        )
    if what := _difference(blob):
        blob.part.unlink()
        raise ModelLoadError(
            f"{location}: {blob.file.name} came with another {what} than the hub has for it; it "
            "was damaged on the way, and is not kept: fetch it again"
        )
    blob.part.replace(blob.path)


def _difference(blob: _Blob) -> str | None:
    """Compare what came with what the hub says of it; None where nothing is wrong."""
    if blob.size and _size_of(blob.part) != blob.size:
        return "size"
    # The ETag of a large file is its digest, too.
    sha256 = blob.file.sha256 or (blob.path.name if _SHA256.fullmatch(blob.path.name) else None)
    if sha256 is not None:
        return None if sha256_of_file(blob.part) == sha256 else "SHA-256"
    if blob.file.blob_id is not None and git_hash(blob.part.read_bytes()) != blob.file.blob_id:
        return "SHA-1"
    return None


class _NoBar(tqdm):
    """A progress bar that is not shown: linking takes no time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["disable"] = True
        super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]


def _link(listing: Listing, revision: str | None, settings: Settings) -> Path:
    """Let the hub library make the commit's folder, whose files link to those that were fetched."""
    folder = snapshot_download(
        listing.location,
        revision=listing.commit,
        allow_patterns=[file.name for file in listing.files],
        endpoint=endpoint_of(settings),
        tqdm_class=_NoBar,
    )
    if revision != listing.commit:
        reference = cache_folder(listing.location) / "refs" / (revision or DEFAULT_REVISION)
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(listing.commit)
    return Path(folder)


def _require_room(location: str, num_new_bytes: int, settings: Settings) -> None:
    """Refuse what the budget or the disk has no room for; nothing is evicted unasked.

    Raises:
        DiskFull: says how much is lacking, and which models were not used for longest.
    """
    folder, models = Path(constants.HF_HUB_CACHE), list_cached()
    taken = sum(model.num_bytes for model in models)
    budget = settings.model_cache_bytes
    over = taken + num_new_bytes - budget if budget is not None else 0
    lacking = max(over, num_new_bytes - shutil.disk_usage(folder).free)
    if num_new_bytes <= 0 or lacking <= 0:
        return
    limit = f"TIDEMARK_MODEL_CACHE_BYTES is {budget}" if over == lacking else "the disk is full"
    names, freed = [], 0
    for model in sorted(models, key=lambda model: model.used_at):
        if freed < lacking and model.location != location:
            names.append(model.location)
            freed += model.num_bytes
    advice = f"`tidemark models evict {' '.join(names)}` frees {readable_size(freed)}"
    if freed < lacking:
        advice = "evicting all others would not be enough: give it more room or another disk"
    raise DiskFull(
        f"{location}: needs {readable_size(num_new_bytes)} more, {readable_size(lacking)} too much "
        f"for the model cache ({folder}, {readable_size(taken)} taken, {limit}); {advice}"
    )


def list_cached() -> list[CachedModel]:
    """Return the hub's models in the cache, whoever fetched them, those not used for longest first.

    Raises:
        StorageError: the cache cannot be read.
    """
    models = []
    with explain_disk_errors(constants.HF_HUB_CACHE):
        for folder in Path(constants.HF_HUB_CACHE).glob("models--*"):
            # Snapshots hold links to the blobs, or the files themselves where links cannot be made.
            paths = [*folder.glob("blobs/*"), *folder.glob("snapshots/*/**/*")]
            states = [path.stat() for path in paths if path.is_file() and not _is_link(path)]
            models.append(
                CachedModel(
                    location=folder.name.removeprefix("models--").replace("--", "/", 1),
                    commits=tuple(sorted(path.name for path in folder.glob("snapshots/*"))),
                    num_bytes=sum(state.st_size for state in states),
                    used_at=max((state.st_atime for state in states), default=0.0),
                )
            )
    return sorted(models, key=lambda model: model.used_at)


def _is_link(path: Path) -> bool:
    return path.is_symlink() and path.parent.name != "blobs"  # blobs may be shared by link


def evict(location: str, keep: str | None = None) -> int:
    """Remove a hub model from the cache.

    Args:
        location: hub id.
        keep: a commit whose files stay; None removes all, unfinished files included.

    Returns:
        How many bytes that freed; 0 where there was nothing to remove.

    Raises:
        StorageError: it cannot be removed.
    """
    folder = cache_folder(location)
    before = _taken_by(location)
    with explain_disk_errors(str(folder)), contextlib.suppress(CacheNotFound):
        info = scan_cache_dir(constants.HF_HUB_CACHE)
        # Only this model's: copies of a repository share the names of commits.
        own = frozenset(repo for repo in info.repos if repo.repo_path.name == folder.name)
        commits = {revision.commit_hash for repo in own for revision in repo.revisions}
        dataclasses.replace(info, repos=own).delete_revisions(*commits - {keep}).execute()
        if keep is None and folder.exists():  # the hub library leaves what it finds damaged
            shutil.rmtree(folder)
    return before - _taken_by(location)


def _taken_by(location: str) -> int:
    return sum(model.num_bytes for model in list_cached() if model.location == location)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def readable_size(num_bytes: int) -> str:
    """Return a size as people write it: 1.5 GiB."""
    size, units = float(num_bytes), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"
