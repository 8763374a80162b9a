"""The local cache of hub models: fetch with verification, list, evict, also automatically.

The cache is that of the huggingface_hub library (see HF_HOME), in the library's layout. So no model
is stored twice. A file is downloaded into ``blobs/<etag>.part``. After an interruption, the next
download resumes this file. The file is renamed after its size and digest were verified.

A download that needs room evicts the least recently used models. It evicts only models that
tidemark has opened, and that no process of tidemark uses: a process that opens a model holds a lock
of it for reading, until it loads another model or ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, ReadWriteLock, Timeout
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
from core.storage.store import explain_disk_errors, sha256_of_file
from models.weights.files import ADAPTER_CONFIG, read_base
from models.weights.hub import (
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

_ETAG = re.compile(r"[\w.+-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNIT = 1024  # bytes of a KiB, KiB of a MiB, …


@dataclass(frozen=True)
class Fetched:
    """The folder and commit of a fetched model, with its size and the downloaded bytes."""

    folder: Path
    commit: str
    num_bytes: int
    num_new_bytes: int


@dataclass(frozen=True)
class CachedModel:
    """A model of the hub in the cache.

    Attributes:
        commits: commits with files in the cache, complete or not.
        num_bytes: size on disk, unfinished files included.
        used_at: POSIX time at which one of the model's files was last read.
    """

    location: str
    commits: tuple[str, ...]
    num_bytes: int
    used_at: float


def open_snapshot(
    location: str, revision: str | None, settings: Settings, is_trusted: bool = False
) -> Path:
    """Return the folder of a hub model; fetch the model if it is not in the cache.

    A cached model is used without a request to the hub. Without a revision, the last fetched commit
    is used. The model is in use until ``release_models``. Raise the errors of ``fetch``.
    """
    _use(location)
    folder = find_cached(location, revision, is_trusted)
    if folder is None:
        return fetch(location, revision, settings, is_trusted).folder
    # Set the access time, which shows the last use; many file systems do not update it.
    with contextlib.suppress(OSError):  # the cache may be read-only
        file = next(folder.iterdir())
        os.utime(file, (time.time(), file.stat().st_mtime))
    return folder


def fetch(
    location: str, revision: str | None, settings: Settings, is_trusted: bool = False
) -> Fetched:
    """Fetch the needed files of a hub model that are missing from the cache.

    Files with code, and pickles, are fetched only for a model that is trusted (``trust: code``).

    Raises:
        ModelLoadError: the hub refuses (see ``ask_hub``), or a digest of downloaded bytes is wrong.
        DiskFull: the cache's size limit or the free disk space would be exceeded.
        StorageError: the cache cannot be written.
    """
    check_revision(location, revision)
    listing = ask_hub(location, revision, settings, is_trusted)
    cache = cache_folder(location)
    lock = cache.parent / ".locks" / cache.name / "fetch.lock"
    with explain_disk_errors(str(cache)), explain_failures(location, revision):
        lock.parent.mkdir(parents=True, exist_ok=True)
        (cache / "blobs").mkdir(parents=True, exist_ok=True)
        with FileLock(lock):  # two runs may fetch the same model
            blobs = [_locate(file, listing, settings) for file in listing.files]
            missing = [blob for blob in blobs if not blob.path.exists()]
            num_new_bytes = sum(blob.size - _size_of(blob.part) for blob in missing)
            _make_room(location, num_new_bytes, settings)
            for blob in missing:
                _download(blob, location)
        folder = _link(listing, revision, settings)
    num_bytes = sum(blob.size for blob in blobs)
    return Fetched(folder, listing.commit, num_bytes, num_new_bytes)


def fetch_with_base(
    location: str, revision: str | None, settings: Settings, is_trusted: bool = False
) -> Iterator[tuple[str, Fetched]]:
    """Fetch a model and, for an adapter, its base model unless that is a local folder.

    Yield the location and the result of each fetch. Raise the errors of ``fetch``.
    """
    fetched = fetch(location, revision, settings, is_trusted)
    yield location, fetched
    if (fetched.folder / ADAPTER_CONFIG).is_file():
        base, base_revision = read_base(fetched.folder, location)
        if not Path(base).is_dir():
            yield base, fetch(base, base_revision, settings, is_trusted)


@dataclass(frozen=True)
class _Blob:
    """A file of a hub model, with its address and its place in the cache."""

    file: HubFile
    url: str
    size: int  # in bytes; 0 if the hub does not state the size
    path: Path

    @property
    def part(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")


def _locate(file: HubFile, listing: Listing, settings: Settings) -> _Blob:
    """Request a file's size and its ETag, which is its name in the cache."""
    endpoint = endpoint_of(settings)
    url = hf_hub_url(listing.location, file.name, revision=listing.commit, endpoint=endpoint)
    head = get_hf_file_metadata(url, timeout=TIMEOUT_S, endpoint=endpoint, retry_on_errors=True)
    if head.etag is None or not _ETAG.fullmatch(head.etag):
        raise ModelLoadError(f"{url}: the hub gave it no usable ETag, but {head.etag!r}")
    path = cache_folder(listing.location) / "blobs" / head.etag
    return _Blob(file, url, head.size or file.size or 0, path)


def _download(blob: _Blob, location: str) -> None:
    """Download a file to the cache, or the rest of it; verify it before it is renamed."""
    if _size_of(blob.part) > blob.size:
        blob.part.unlink()  # not a part of this file, or the file's size is unknown
    with blob.part.open("ab") as file:
        http_get(
            blob.url,
            file,
            resume_size=file.tell(),
            headers={**build_hf_headers(), "Accept-Encoding": "identity"},
            expected_size=blob.size or None,
            displayed_filename=blob.file.name,
        )
    what = _difference(blob)
    if what:
        blob.part.unlink()
        raise ModelLoadError(
            f"{location}: {blob.file.name} came with another {what} than the hub has for it; it "
            "was damaged on the way, and is not kept: fetch it again"
        )
    blob.part.replace(blob.path)


def _difference(blob: _Blob) -> str | None:
    """Return what of a downloaded file is not as the hub states: size or digest; None if all is."""
    if blob.size and _size_of(blob.part) != blob.size:
        return "size"
    # The ETag of a large file is its digest.
    sha256 = blob.file.sha256 or (blob.path.name if _SHA256.fullmatch(blob.path.name) else None)
    if sha256 is not None:
        return None if sha256_of_file(blob.part) == sha256 else "SHA-256"
    if blob.file.blob_id is not None and git_hash(blob.part.read_bytes()) != blob.file.blob_id:
        return "SHA-1"
    return None


class _NoBar(tqdm):
    """A hidden progress bar, because linking takes no time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["disable"] = True
        super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]


def _link(listing: Listing, revision: str | None, settings: Settings) -> Path:
    """Let the hub library create the commit's folder with links to the fetched files."""
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


_in_use: dict[Path, ReadWriteLock] = {}  # held locks of this process, by their files
_log = logging.getLogger(__name__)


def _lock_of_use(location: str) -> Path:
    cache = cache_folder(location)
    return cache.parent / ".locks" / cache.name / "use.db"


def _use(location: str) -> None:
    """Keep a model from eviction by other processes; without effect in a read-only cache."""
    path = _lock_of_use(location)
    if path in _in_use:
        return
    with contextlib.suppress(OSError, sqlite3.Error):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = ReadWriteLock(path, is_singleton=False)
        lock.acquire_read()  # waits while the model is being evicted
        _in_use[path] = lock


def release_models() -> None:
    """Release all models that this process has opened, so that they may be evicted."""
    while _in_use:
        _in_use.popitem()[1].close()


def _make_room(location: str, num_new_bytes: int, settings: Settings) -> None:
    """Evict models for a download, if necessary; raise DiskFull if there is no room even then."""
    # The download must leave ``model_free_bytes`` on the disk and keep to ``model_cache_bytes``.
    # Nothing is evicted if all models that may be evicted are not enough.
    folder = Path(constants.HF_HUB_CACHE)
    models = list_cached()
    taken = sum(model.num_bytes for model in models)
    budget = settings.model_cache_bytes
    # Bytes above the limit of the cache, and bytes that the cache or the disk lacks.
    over = taken + num_new_bytes - budget if budget is not None else 0
    free_bytes = shutil.disk_usage(folder).free
    lacking = max(over, num_new_bytes + settings.model_free_bytes - free_bytes)
    if num_new_bytes <= 0 or lacking <= 0:
        return
    limit = f"TIDEMARK_MODEL_CACHE_BYTES is {budget}" if over == lacking else "the disk is full"
    with ExitStack() as stack:
        chosen = []
        freed = 0
        for model in models:  # the least recently used first
            if freed < lacking and model.location != location and _lock(model.location, stack):
                chosen.append(model)
                freed += model.num_bytes
        if freed >= lacking:
            for model in chosen:
                size = readable_size(evict(model.location))
                _log.warning("%s: removed from the model cache, %s freed", model.location, size)
            return
    # Not enough may be evicted: name the models whose eviction would be enough.
    names = []
    freed = 0
    for model in models:
        if freed < lacking and model.location != location:
            names.append(model.location)
            freed += model.num_bytes
    advice = f"`tidemark models evict {' '.join(names)}` frees {readable_size(freed)}"
    if freed < lacking:
        advice = "evicting all others would not be enough: give it more room or another disk"
    raise DiskFull(
        f"{location}: needs {readable_size(num_new_bytes)} more, {readable_size(lacking)} too much "
        f"for the model cache ({folder}, {readable_size(taken)} taken, {limit}), and models that "
        f"tidemark has opened and no process uses are not enough to remove; {advice}"
    )


def _lock(location: str, stack: ExitStack) -> bool:
    """Lock a model against use, until ``stack`` ends; return False if it is in use, or foreign."""
    path = _lock_of_use(location)
    if path in _in_use or not path.exists():
        return False
    with contextlib.suppress(OSError, sqlite3.Error, Timeout):
        lock = ReadWriteLock(path, is_singleton=False)
        stack.callback(lock.close)
        lock.acquire_write(blocking=False)
        return True
    return False


def list_cached() -> list[CachedModel]:
    """Return all hub models in the cache, the least recently used first.

    Raise StorageError if the cache cannot be read.
    """
    models = []
    with explain_disk_errors(constants.HF_HUB_CACHE):
        for folder in Path(constants.HF_HUB_CACHE).glob("models--*"):
            # Snapshots contain links to blobs, or the files if the file system has no links.
            paths = [*folder.glob("blobs/*"), *folder.glob("snapshots/*/**/*")]
            # A linked blob counts as a file, a link to a blob does not.
            files = (each for each in paths if each.parent.name == "blobs" or not each.is_symlink())
            states = [path.stat() for path in files if path.is_file()]
            models.append(
                CachedModel(
                    location=folder.name.removeprefix("models--").replace("--", "/", 1),
                    commits=tuple(sorted(path.name for path in folder.glob("snapshots/*"))),
                    num_bytes=sum(state.st_size for state in states),
                    used_at=max((state.st_atime for state in states), default=0.0),
                )
            )
    return sorted(models, key=lambda model: model.used_at)


def evict(location: str, keep: str | None = None) -> int:
    """Remove a hub model from the cache; return the number of freed bytes.

    Keep the files of the commit ``keep``. Without ``keep``, remove all files, including unfinished
    downloads. Raise StorageError if the model cannot be removed.
    """
    folder = cache_folder(location)
    before = _taken_by(location)
    with explain_disk_errors(str(folder)), contextlib.suppress(CacheNotFound):
        info = scan_cache_dir(constants.HF_HUB_CACHE)
        # Select only this model, because copies of a repository have equal commits.
        own = frozenset(repo for repo in info.repos if repo.repo_path.name == folder.name)
        commits = {revision.commit_hash for repo in own for revision in repo.revisions}
        dataclasses.replace(info, repos=own).delete_revisions(*commits - {keep}).execute()
        if keep is None and folder.exists():  # the hub library does not delete damaged folders
            shutil.rmtree(folder)
    return before - _taken_by(location)


def _taken_by(location: str) -> int:
    return sum(model.num_bytes for model in list_cached() if model.location == location)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def readable_size(num_bytes: int) -> str:
    """Return a size in readable units, such as 1.5 GiB."""
    size = float(num_bytes)
    units = ["B", "KiB", "MiB", "GiB"]
    while size >= _UNIT and len(units) > 1:
        size /= _UNIT
        units.pop(0)
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"
