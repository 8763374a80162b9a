"""Files under the data root, local or on an object store, written all or nothing."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import glob
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import quote, unquote

import fsspec
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
from fsspec.utils import glob_translate

from core.errors import DiskFull, StorageError

_READ_SIZE = 2**20
# An object store that cannot be reached, or that we have no key for, is not an OSError.
_FAILURES = (OSError, BotoCoreError)


class Store:
    """A tree of files addressed by relative POSIX paths, such as ``corpus/…/manifest.json``.

    Writes are atomic: a reader sees the old file or the whole new one. On a local disk that is a
    temporary name, fsync, rename; on an object store it is the single put at the end.

    Args:
        root: a local folder or any URL that fsspec knows (``s3://bucket/prefix``).
        options: passed to fsspec, e.g. ``endpoint_url`` for an S3-compatible server.

    Raises:
        StorageError: from every method too, when the disk or the object store refuses.
    """

    def __init__(self, root: str, **options: Any) -> None:
        self.root = root.rstrip("/")
        self._is_local = "://" not in root
        if self._is_local:
            self.root = str(Path(root).resolve())
        # No listings are remembered: another worker may have written since.
        options.setdefault("use_listings_cache", False)
        try:
            self._fs, self._base = fsspec.core.url_to_fs(self.root, **options)
        except (ValueError, ImportError) as error:
            raise StorageError(f"{root} cannot be a data root: {error}") from error

    def url(self, path: str) -> str:
        """The full address of a path, for messages and for readers such as DuckDB."""
        return f"{self.root}/{path}" if path else self.root

    def _key(self, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise StorageError(f"{path!r} leaves the data root {self.root}")
        return f"{self._base}/{path}"

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        with _explain_failures(f"look for {self.url(path)}"):
            return bool(self._fs.exists(self._key(path)))

    def list(self, pattern: str) -> list[str]:
        """Return the paths that match a glob pattern, sorted."""
        base = self._base.rstrip("/") + "/"
        with _explain_failures(f"list {self.url(pattern)}"):
            key = self._key(pattern)
            if self._is_local:  # three times faster: nothing is asked about each file
                options: dict[str, Any] = {"recursive": True, "include_hidden": True}
                return sorted(glob.glob(pattern, root_dir=self._base, **options))  # noqa: PTH207
            # The root is no part of the pattern, whatever characters it has.
            whole = glob.escape(self._base) + key.removeprefix(self._base)
            parts = pattern.split("/")
            open_ = [number for number, part in enumerate(parts) if glob.has_magic(part)]
            if len(open_) < 2:
                found = self._fs.glob(whole)
            else:  # a thousand names an answer; a glob would ask once a folder
                below = self._fs.find(base + "/".join(parts[: open_[0]]))
                found = filter(re.compile(glob_translate(whole)).match, _with_folders(below))
        return sorted(path.removeprefix(base) for path in found)

    def list_stamped(self, pattern: str) -> dict[str, Stamp]:
        """As ``list``, with what tells one content of a file from the next, without reading it."""
        base = self._base.rstrip("/") + "/"
        with _explain_failures(f"list {self.url(pattern)}"):
            key = self._key(pattern)
            found = self._fs.glob(
                glob.escape(self._base) + key.removeprefix(self._base), detail=True
            )
        return {path.removeprefix(base): Stamp.of(info) for path, info in sorted(found.items())}

    def read_bytes(self, path: str) -> bytes:
        """Read a whole (small) file.

        Raises:
            StorageError: it is not there or cannot be read.
        """
        with self.open(path) as file, _explain_failures(f"read {self.url(path)}"):
            return bytes(file.read())

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading, seekable.

        Raises:
            StorageError: it is not there or cannot be opened.
        """
        with _explain_failures(f"read {self.url(path)}"):
            return self._fs.open(self._key(path), "rb")  # type: ignore[no-any-return]

    def sha256(self, path: str) -> str:
        """Digest a file in constant memory.

        Raises:
            StorageError: it is not there or cannot be read.
        """
        with self.open(path) as file, _explain_failures(f"read {self.url(path)}"):
            return _sha256_of_stream(file)

    def modified_at(self, path: str) -> dt.datetime | None:
        """Return when a file was written (UTC), or None where there is none."""
        with _explain_failures(f"look for {self.url(path)}"):
            try:
                moment: dt.datetime = self._fs.modified(self._key(path))
            except FileNotFoundError:
                return None
        return moment.astimezone(dt.UTC)

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all it holds; nothing happens where there is none."""
        with (
            _explain_failures(f"delete {self.url(path)}"),
            contextlib.suppress(FileNotFoundError),  # another worker was faster
        ):
            if self.exists(path):
                self._fs.rm(self._key(path), recursive=True)

    def write_bytes(self, path: str, data: bytes) -> str:
        """Write a whole file atomically and return its SHA-256 (hex).

        Raises:
            DiskFull: no space; the old file, if any, is untouched.
        """
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
        if self.exists(path):
            return False
        if self._is_local:
            self.write_bytes(path, data)
            return True
        with explain_disk_errors(self.url(path)):
            try:
                self._fs.pipe_file(self._key(path), data, mode="create")
            except FileExistsError:
                return False
        return True

    def move(self, path: str, to: str) -> None:
        """Give a file another path, in place of what is there."""
        source, target = self._key(path), self._key(to)
        with explain_disk_errors(self.url(to)):
            if self._is_local:
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                Path(source).replace(target)
            else:
                self._fs.mv(source, target)

    @contextlib.contextmanager
    def alone(self, folder: str) -> Iterator[None]:
        """Keep other processes out who call this for the same folder; wait for who is in it.

        Only on a local disk: an object store has no locks. Nothing is left behind, also by a kill.
        """
        if not self._is_local:
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
        key = self._key(path)
        with explain_disk_errors(self.url(path)):
            folder = Path(key).parent if self._is_local else Path(tempfile.gettempdir())
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".tmp-{Path(key).name}-", dir=folder)
            os.close(handle)
            staged = Staged(Path(name))
            try:
                yield staged
                staged.sha256 = sha256_of_file(staged.path)
                if self._is_local:
                    replace_durably(staged.path, Path(key))
                else:
                    self._fs.put_file(name, key)
            finally:
                staged.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Stamp:
    """What a listing says of a file; it changes with the content.

    Attributes:
        modified_at: seconds since 1970; 0 where the store does not say.
        num_bytes: its size.
        tag: what an object store calls the content; empty on a disk.
    """

    modified_at: float
    num_bytes: int
    tag: str

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Stamp:
        """Read it from an entry of fsspec, whose stores do not agree on names."""
        moment = info.get("mtime", info.get("LastModified", 0.0))
        seconds = moment.timestamp() if isinstance(moment, dt.datetime) else float(moment)
        return cls(seconds, int(info.get("size") or 0), str(info.get("ETag", "")))


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


def _with_folders(paths: Iterable[str]) -> set[str]:
    return {str(each) for path in paths for each in (path, *PurePosixPath(path).parents)}


@contextlib.contextmanager
def _explain_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        raise StorageError(f"cannot {doing}: {error}") from error


@contextlib.contextmanager
def explain_disk_errors(where: str) -> Iterator[None]:
    """Turn the operating system's write errors into ours, which say where and what to do."""
    try:
        yield
    except _FAILURES as error:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            folder = Path(where).parent if "://" not in where else Path(tempfile.gettempdir())
            free = shutil.disk_usage(_existing(folder)).free
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
