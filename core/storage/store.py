"""Files under the data root, with atomic writes."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import glob
import hashlib
import os
import posixpath
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar
from urllib.parse import quote, unquote

from core.errors import DiskFull, StorageError
from core.plugins import import_parts
from core.storage.temporary import prefix_of, prefix_of_mine, sweep

ALONE_WAIT_S = 600.0
_ALONE_LOOK_S = 0.01
_READ_SIZE = 2**20
_T = TypeVar("_T")
# The error classes of disks; an extra that opens other roots adds those of its stores.
_FAILURES: set[type[Exception]] = {OSError}


@dataclass(frozen=True)
class Stamp:
    """Time, size and tag of a file in a listing, which show if the content has changed.

    Attributes:
        modified_at: seconds since 1970; 0 if unknown.
        tag: the object store's tag of the content (ETag); empty on a local disk.
    """

    modified_at: float
    num_bytes: int
    tag: str

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Stamp:
        """Return the stamp of a listing entry of fsspec, whose keys differ between stores."""
        moment = info.get("mtime", info.get("LastModified", 0.0))
        seconds = moment.timestamp() if isinstance(moment, dt.datetime) else float(moment)
        return cls(seconds, int(info.get("size") or 0), str(info.get("ETag", "")))


class Store:
    """A tree of files addressed by relative POSIX paths, such as ``corpus/…/manifest.json``.

    Writes are atomic: a reader sees the old file or the complete new file. A temporary file is
    synced and renamed. For an address such as ``s3://bucket/prefix``, ``Store`` returns an instance
    of a subclass, which an extra defines. The subclass may write in another way.

    Args:
        root: a local folder, or an address that an extra opens.
        scratch: folder for files that wait for their upload; default: the system's folder for
            temporary files.
        options: options of the extra, e.g. ``endpoint_url`` for an S3-compatible server.

    Raises:
        StorageError: no extra opens the address; from every method: the disk or the store fails.
    """

    def __new__(cls, root: str = "", *_arguments: Any, **_options: Any) -> Store:
        """Make an instance of the class that opens ``root``. Unpickling passes no ``root``."""
        if cls is Store and "://" in root:
            return super().__new__(_find_subclass(root))
        return super().__new__(cls)

    def __init__(self, root: str, scratch: Path | None = None, **options: Any) -> None:
        import fsspec

        self.root = str(Path(root).resolve())
        self._scratch = scratch
        self._swept: set[Path] = set()
        self._fs, self._base = fsspec.core.url_to_fs(self.root, **options)

    def url(self, path: str) -> str:
        """Return the full URL of a path, for messages and for readers such as DuckDB."""
        return f"{self.root}/{path}" if path else self.root

    def _key(self, path: str) -> str:
        """Return the full path for fsspec; raise StorageError outside of the data root."""
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise StorageError(f"{path!r} leaves the data root {self.root}")
        return f"{self._base}/{path}"

    def _do(self, doing: str, work: Callable[[], _T]) -> _T:
        """Return ``work()``; convert errors to StorageError. ``doing`` is a verb for messages."""
        try:
            return work()
        except OSError as error:
            raise StorageError(f"cannot {doing}: {error}") from error

    def exists(self, path: str) -> bool:
        """Return True if the file or folder exists."""
        key = self._key(path)
        return bool(self._do(f"look for {self.url(path)}", lambda: self._fs.exists(key)))

    def list(self, pattern: str) -> list[str]:
        """Return the paths that match a glob pattern, sorted."""
        self._key(pattern)  # raises an error for patterns outside the root
        return sorted(self._do(f"list {self.url(pattern)}", lambda: self._find(pattern)))

    def _find(self, pattern: str) -> set[str]:
        # Python's glob is three times faster than fsspec's, which reads each file's status.
        base = self._base.rstrip("/") + "/"
        found = glob.glob(pattern, root_dir=base, recursive=True, include_hidden=True)  # noqa: PTH207
        return set(found)

    def list_stamped(self, pattern: str) -> dict[str, Stamp]:
        """Return the paths that match a glob pattern, each with the stamp of its file."""
        key = self._key(pattern)
        base = self._base.rstrip("/") + "/"
        full_pattern = glob.escape(self._base) + key.removeprefix(self._base)
        doing = f"list {self.url(pattern)}"
        found = self._do(doing, lambda: self._fs.glob(full_pattern, detail=True))
        return {path.removeprefix(base): Stamp.of(info) for path, info in sorted(found.items())}

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a small file; raise StorageError if the file does not exist."""
        key = self._key(path)
        return bytes(self._do(f"read {self.url(path)}", lambda: self._fs.cat_file(key)))

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading and seeking; all reads return the same version of the file."""
        key = self._key(path)
        return self._do(f"read {self.url(path)}", lambda: self._fs.open(key, "rb"))

    def fetch(self, path: str, to: Path) -> None:
        """Copy a file to this machine; never mix two versions, even if the file is replaced.

        Raises:
            StorageError: the file is missing or unreadable, or was replaced during every attempt.
        """
        with explain_disk_errors(str(to)), self.open(path) as file, to.open("wb") as copy:
            shutil.copyfileobj(file, copy, _READ_SIZE)

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file, computed in constant memory."""
        with self.open(path) as file:
            try:
                return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            except OSError as error:
                raise StorageError(f"cannot read {self.url(path)}: {error}") from error

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with its content; do nothing if the path does not exist."""
        key = self._key(path)

        def delete_at_key() -> None:
            try:
                if self._fs.isfile(key):
                    self._fs.rm_file(key)  # rm() would read brackets in a name as a pattern
                elif self._fs.exists(key):
                    self._fs.rm(key, recursive=True)
            except FileNotFoundError:  # another process deleted the file
                return
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:  # another process wrote into the folder
                    raise

        self._do(f"delete {self.url(path)}", delete_at_key)

    def write_bytes(self, path: str, data: bytes) -> str:
        """Write a file atomically; return its SHA-256 (hex). After DiskFull, the old file stays."""
        with self.writing(path) as staged:
            staged.path.write_bytes(data)
        return staged.sha256

    def create_bytes(self, path: str, data: bytes) -> bool:
        """Create a file and return True; return False if the file exists.

        Callers must hold the lock of the folder (``alone``). Then only one of them succeeds.
        """
        if self.exists(path):
            return False
        self.write_bytes(path, data)
        return True

    def move(self, path: str, to: str) -> None:
        """Move a file; replace an existing file at the new path."""
        source = self._key(path)
        target = self._key(to)
        with explain_disk_errors(self.url(to)):
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(source).replace(target)

    @contextlib.contextmanager
    def alone(self, folder: str, wait_s: float = ALONE_WAIT_S) -> Iterator[None]:
        """Lock a folder against other processes that call this method; wait until it is free.

        The end of the process releases the lock. A process that a signal has stopped keeps it.

        Raises:
            StorageError: others hold the lock for ``wait_s`` seconds.
        """
        with explain_disk_errors(self.url(folder)):
            Path(self._key(folder)).mkdir(parents=True, exist_ok=True)
            handle = os.open(self._key(folder), os.O_RDONLY)
        try:
            deadline = time.monotonic() + wait_s
            while not _lock(handle):
                if time.monotonic() > deadline:
                    raise StorageError(
                        f"{self.url(folder)}: another process has locked the folder for "
                        f"{wait_s:.0f} s; `lsof {self._key(folder)}` names it. If it is stopped, "
                        "continue it (`kill -CONT`) or end it, and run this again"
                    )
                time.sleep(_ALONE_LOOK_S)
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[Staged]:
        """Yield a local temporary file; rename or upload it if the ``with`` block succeeds.

        Raises:
            DiskFull: the disk is full; the temporary file is deleted, and the old file stays.
        """
        key = self._key(path)
        folder = self._staging(path)
        with explain_disk_errors(self.url(path), folder):
            self._prepare(folder)
            handle, name = tempfile.mkstemp(prefix=prefix_of_mine(Path(key).name), dir=folder)
            os.close(handle)
            staged = Staged(Path(name))
            try:
                yield staged
                staged.sha256 = sha256_of_file(staged.path)
                self._put(staged.path, path)
            finally:
                staged.path.unlink(missing_ok=True)

    def _staging(self, path: str) -> Path:
        return Path(self._key(path)).parent

    def _prepare(self, folder: Path) -> None:
        """Make a folder for temporary files, without those of killed writers."""
        folder.mkdir(parents=True, exist_ok=True)
        if folder not in self._swept:
            sweep(folder)
            self._swept.add(folder)  # once: a folder may have thousands of files

    def _put(self, temporary: Path, path: str) -> None:
        """Put a complete temporary file in its place."""
        replace_durably(temporary, Path(self._key(path)))

    def clear_leftovers(self, path: str) -> None:
        """Delete a file's temporary files of killed writers; no process may be writing the file."""
        folder, name = posixpath.split(path)
        for leftover in self.list(f"{folder}/{prefix_of(name)}*".lstrip("/")):
            self.delete(leftover)


def _lock(folder: int) -> bool:
    """Try to lock an open folder without waiting; return True if this succeeds."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _find_subclass(root: str) -> type[Store]:
    """Return the class of an extra that opens an address; raise StorageError if there is none."""
    for part in import_parts("stores"):
        _FAILURES.update(part.FAILURES)
        found: type[Store] = part.RemoteStore
        return found
    raise StorageError(f"{root} cannot be opened: that needs the extra object_store")


@dataclass
class Staged:
    """A temporary file during writing; ``sha256`` is set when the ``with`` block ends."""

    path: Path
    sha256: str = ""


@contextlib.contextmanager
def writing_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of ``path``; rename it to ``path`` afterwards.

    If ``path`` is not an ordinary file (``/dev/stdout``, a pipe), yield ``path`` itself. After a
    StorageError, the old file stays.
    """
    with explain_disk_errors(str(path)):
        final = path.resolve()  # replace the target of a symbolic link, not the link
        if final.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if final.exists() and not final.is_file():
            yield final
            return
        sweep(final.parent, prefix_of(final.name))
        handle, name = tempfile.mkstemp(prefix=prefix_of_mine(final.name), dir=final.parent)
        os.close(handle)
        try:
            yield Path(name)
            replace_durably(Path(name), final)
        finally:
            Path(name).unlink(missing_ok=True)


def replace_durably(temporary: Path, final: Path) -> None:
    """Rename a file to ``final``, so that a power cut leaves the complete old or new file."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.chmod(0o644)  # files of mkstemp are readable only for their owner
    temporary.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def explain_disk_errors(where: str, folder: Path | None = None) -> Iterator[None]:
    """Convert write errors of the operating system into StorageError with a remedy.

    ``where`` names the file in messages, which also state the free space on the disk of
    ``folder``; default: the folder of the file.
    """
    try:
        yield
    except tuple(_FAILURES) as error:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            start = folder or Path(where).parent
            free = shutil.disk_usage(next(filter(Path.exists, (start, *start.parents)))).free
            raise DiskFull(
                f"no space left while writing {where} ({free / 2**20:.0f} MiB free on that disk); "
                "free some or move the data root (TIDEMARK_HOME), then run the same command again"
            ) from error
        raise StorageError(f"cannot write {where}: {error}") from error


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a local file, computed in constant memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def path_part(name: str) -> str:
    """Encode a name, such as a hub id with a slash, as one safe component of a path."""
    # UTF-8 cannot encode lone surrogates, so ignore them here; the comparison below then fails.
    part = quote(name, safe="-_.+@", errors="ignore")
    if part in {"", ".", ".."} or unquote(part) != name:
        raise StorageError(f"{name!r} cannot name a folder")
    return part


def name_of_part(part: str) -> str:
    """Decode a path component from ``path_part``; return the name."""
    return unquote(part)
