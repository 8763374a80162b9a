"""Files under the data root, local or on an object store, written all or nothing."""

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
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar
from urllib.parse import quote, unquote

import fsspec

from core.errors import DiskFull, StorageError
from core.object_store import FAILURES, ObjectStore, was_replaced
from core.stamps import Stamp

_READ_SIZE = 2**20
FETCH_ATTEMPTS = 10
_T = TypeVar("_T")


class Store:
    """A tree of files addressed by relative POSIX paths, such as ``corpus/…/manifest.json``.

    Writes are atomic: a reader sees the old file or the whole new one. On a local disk that is a
    temporary name, fsync, rename; on an object store it is the single put at the end.

    Args:
        root: a local folder or any URL that fsspec knows (``s3://bucket/prefix``).
        scratch: where files are written before they go to an object store; default: the system's
            folder for temporary files, which may be small.
        options: passed to fsspec, e.g. ``endpoint_url`` for an S3-compatible server.

    Raises:
        StorageError: from every method too, when the disk or the object store refuses, the latter
            also when asked again for a while.
    """

    def __init__(self, root: str, scratch: Path | None = None, **options: Any) -> None:
        self.root = root.rstrip("/")
        self._scratch = scratch
        self._remote: ObjectStore | None = None
        if "://" not in root:
            self.root = str(Path(root).resolve())
            self._fs, self._base = fsspec.core.url_to_fs(self.root)
            return
        try:
            self._remote = ObjectStore(self.root, options)
        except (ValueError, ImportError) as error:
            raise StorageError(f"{root} cannot be a data root: {error}") from error
        self._fs, self._base = self._remote.fs, self._remote.base

    def url(self, path: str) -> str:
        """The full address of a path, for messages and for readers such as DuckDB."""
        return f"{self.root}/{path}" if path else self.root

    def _key(self, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise StorageError(f"{path!r} leaves the data root {self.root}")
        return f"{self._base}/{path}"

    def _do(self, doing: str, work: Callable[[], _T]) -> _T:
        """Do work on the files, several times where an object store fails at first."""
        if self._remote is not None:
            return self._remote.patiently(doing, work)
        try:
            return work()
        except OSError as error:
            raise StorageError(f"cannot {doing}: {error}") from error

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        key, remote = self._key(path), self._remote
        look = self._fs.exists if remote is None else remote.exists
        return bool(self._do(f"look for {self.url(path)}", lambda: look(key)))

    def list(self, pattern: str) -> list[str]:
        """Return the paths that match a glob pattern, sorted."""
        self._key(pattern)  # refuses one that leaves the root
        remote, base = self._remote, self._base.rstrip("/") + "/"

        def find() -> set[str]:
            if remote is not None:
                return remote.find(pattern)
            # Three times faster than fsspec's, which asks about each file.
            options: dict[str, Any] = {"recursive": True, "include_hidden": True}
            return set(glob.glob(pattern, root_dir=base, **options))  # noqa: PTH207

        return sorted(self._do(f"list {self.url(pattern)}", find))

    def list_stamped(self, pattern: str) -> dict[str, Stamp]:
        """As ``list``, with what tells one content of a file from the next, without reading it."""
        key, base = self._key(pattern), self._base.rstrip("/") + "/"
        whole = glob.escape(self._base) + key.removeprefix(self._base)
        doing = f"list {self.url(pattern)}"
        found = self._do(doing, lambda: self._fs.glob(whole, detail=True))
        return {path.removeprefix(base): Stamp.of(info) for path, info in sorted(found.items())}

    def read_bytes(self, path: str) -> bytes:
        """Read a whole (small) file.

        Raises:
            StorageError: it is not there or cannot be read.
        """
        key = self._key(path)
        return bytes(self._do(f"read {self.url(path)}", lambda: self._fs.cat_file(key)))

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading, seekable; what is read of it is of one version.

        Raises:
            StorageError: it is not there or cannot be opened; from the file: it cannot be read.
        """
        key, doing, remote = self._key(path), f"read {self.url(path)}", self._remote
        if remote is None:
            return self._do(doing, lambda: self._fs.open(key, "rb"))
        return self._do(doing, lambda: remote.open(key, doing))

    def fetch(self, path: str, to: Path) -> None:
        """Copy a whole file to this machine; if it is replaced meanwhile, the old one or the new.

        Raises:
            StorageError: it is not there, cannot be read, or is replaced again and again.
            DiskFull: no space for it.
        """
        for attempt in range(1, FETCH_ATTEMPTS + 1):
            try:
                with (
                    explain_disk_errors(str(to)),
                    self.open(path) as remote,
                    to.open("wb") as local,
                ):
                    shutil.copyfileobj(remote, local, _READ_SIZE)
                return
            except StorageError as error:
                if attempt == FETCH_ATTEMPTS or not was_replaced(error):
                    raise

    def sha256(self, path: str) -> str:
        """Digest a file in constant memory.

        Raises:
            StorageError: it is not there or cannot be read.
        """
        with self.open(path) as file:
            try:
                return _sha256_of_stream(file)
            except OSError as error:
                raise StorageError(f"cannot read {self.url(path)}: {error}") from error

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all it holds; nothing happens where there is none."""
        key = self._key(path)

        def delete() -> None:
            with contextlib.suppress(FileNotFoundError):  # another worker was faster
                if self._fs.exists(key):
                    self._fs.rm(key, recursive=True)

        self._do(f"delete {self.url(path)}", delete)

    def write_bytes(self, path: str, data: bytes) -> str:
        """Write a whole file atomically and return its SHA-256 (hex).

        Raises:
            DiskFull: no space; the old file, if any, is untouched.
        """
        if self._remote is not None:
            key = self._key(path)
            self._do(f"write {self.url(path)}", lambda: self._fs.pipe_file(key, data))
            return hashlib.sha256(data).hexdigest()
        with self.writing(path) as staged:
            staged.path.write_bytes(data)
        return staged.sha256

    def create_bytes(self, path: str, data: bytes) -> bool:
        """Write a whole file where there is none; return False where there is one.

        Of several who create a file at once, one does: on an object store because the put is
        conditional, on a local disk if all of them hold its folder (``alone``).

        Raises:
            DiskFull: no space; nothing is there.
        """
        key, remote = self._key(path), self._remote
        if remote is not None:
            create = remote.creation(key, data)
            return self._do(f"write {self.url(path)}", create)
        if self.exists(path):
            return False
        self.write_bytes(path, data)
        return True

    def move(self, path: str, to: str) -> None:
        """Give a file another path, in place of what is there."""
        source, target = self._key(path), self._key(to)
        if self._remote is not None:
            self._do(f"write {self.url(to)}", lambda: self._fs.cp_file(source, target))
            self.delete(path)
            return
        with explain_disk_errors(self.url(to)):
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(source).replace(target)

    @contextlib.contextmanager
    def alone(self, folder: str) -> Iterator[None]:
        """Keep other processes out who call this for the same folder; wait for who is in it.

        Only on a local disk: an object store has no locks. Nothing is left behind, also by a kill.
        """
        if self._remote is not None:
            yield
            return
        with explain_disk_errors(self.url(folder)):
            Path(self._key(folder)).mkdir(parents=True, exist_ok=True)
            handle = os.open(self._key(folder), os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[Staged]:
        """Yield a local temporary file; it takes its place when the block ends without an error.

        Raises:
            DiskFull: no space; the temporary file is gone and the old one untouched.
        """
        key, folder = self._key(path), self._staging(path)
        with explain_disk_errors(self.url(path), folder):
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".tmp-{Path(key).name}-", dir=folder)
            os.close(handle)
            staged = Staged(Path(name))
            try:
                yield staged
                staged.sha256 = sha256_of_file(staged.path)
                if self._remote is None:
                    replace_durably(staged.path, Path(key))
                else:
                    put = self._remote.putting(name, key)
                    self._do(f"write {self.url(path)}", put)
            finally:
                staged.path.unlink(missing_ok=True)

    def _staging(self, path: str) -> Path:
        if self._remote is None:
            return Path(self._key(path)).parent
        return self._scratch / "staging" if self._scratch else Path(tempfile.gettempdir())

    def clear_leftovers(self, path: str) -> None:
        """Delete what killed writers of a file have left; nobody may be writing it.

        In an object store also everybody's uploads and temporary files that are a day old.
        """
        folder, name = posixpath.split(path)
        if self._remote is None:
            for leftover in self.list(f"{folder}/.tmp-{name}-*".lstrip("/")):
                self.delete(leftover)
            return
        day_ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        for file in self._staging(path).glob(".tmp-*"):
            is_own = file.name.startswith(f".tmp-{name}-")
            if is_own or file.stat().st_mtime < day_ago.timestamp():
                file.unlink(missing_ok=True)
        remote, key = self._remote, self._key(path)
        self._do(f"clear uploads to {self.url('')}", lambda: remote.abort_uploads(key, day_ago))


class Staged:
    """A file being written; ``sha256`` is known once it has taken its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""


@contextlib.contextmanager
def writing_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path``, whose place it takes when the block ends well.

    What is no ordinary file (``/dev/stdout``, a pipe) is yielded itself.

    Raises:
        StorageError: it cannot be written; what was there before still is.
    """
    with explain_disk_errors(str(path)):
        final = path.resolve()  # a link goes on leading there
        if final.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if final.exists() and not final.is_file():
            yield final
            return
        # Names of 255 bytes are as long as most file systems take.
        handle, name = tempfile.mkstemp(prefix=f".tmp-{final.name[:40]}-", dir=final.parent)
        os.close(handle)
        try:
            yield Path(name)
            replace_durably(Path(name), final)
        finally:
            Path(name).unlink(missing_ok=True)


def replace_durably(temporary: Path, final: Path) -> None:
    """Rename over ``final`` so that a power cut leaves the old file or the whole new one."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.chmod(0o644)  # mkstemp makes files that only their owner can read
    temporary.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def explain_disk_errors(where: str, folder: Path | None = None) -> Iterator[None]:
    """Turn the operating system's write errors into ours, which say where and what to do.

    Args:
        where: what is written, for messages.
        folder: on whose disk; default: that of ``where``, a path.
    """
    try:
        yield
    except FAILURES as error:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            free = shutil.disk_usage(_existing(folder or Path(where).parent)).free
            raise DiskFull(
                f"no space left while writing {where} ({free / 2**20:.0f} MiB free on that disk); "
                "free some or move the data root (TIDEMARK_HOME), then run the same command again"
            ) from error
        raise StorageError(f"cannot write {where}: {error}") from error


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def sha256_of_file(path: Path) -> str:
    """Digest a file in constant memory."""
    with path.open("rb") as file:
        return _sha256_of_stream(file)


def _sha256_of_stream(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(_READ_SIZE):
        digest.update(block)
    return digest.hexdigest()


def path_part(name: str) -> str:
    """Encode any name (a hub id with a slash, ``control:zstd``) as one safe path component."""
    # errors: a name typed in another encoding holds lone surrogates, which have no UTF-8.
    part = quote(name, safe="-_.+@", errors="ignore")
    if part in {"", ".", ".."} or unquote(part) != name:
        raise StorageError(f"{name!r} cannot name a folder")
    return part


def name_of_part(part: str) -> str:
    """Undo ``path_part``."""
    return unquote(part)
