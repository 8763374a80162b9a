"""What sites answered, kept on disk, so that a re-run parses again without fetching again."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zstandard

from core.errors import SourceChanged, StorageError
from core.storage import explain_disk_errors
from crawlers.urls import is_sendable


@dataclass(frozen=True)
class Fetched:
    """An answer with status 200.

    Attributes:
        url: where the answer came from, after redirects.
        headers: as sent, names in lower case; ``body`` has its transfer and gzip coding undone.
        body: bytes, undecoded: a charset in the headers is a claim.
        retrieved_at: when the site gave it, in UTC, also when it was read from the cache now.
    """

    url: str
    headers: dict[str, str]
    body: bytes
    retrieved_at: dt.datetime

    @property
    def validators(self) -> dict[str, str]:
        """The headers that ask whether this answer is still good (RFC 9110, 13.1)."""
        pairs = (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified"))
        values = ((name, self.headers.get(theirs, "")) for name, theirs in pairs)
        return {name: value for name, value in values if value and is_sendable(value)}

    def renewed(self, confirmation: Fetched) -> Fetched:
        """Return this answer as one that was had now, since the site confirmed it (304)."""
        told = confirmation.headers.items()
        news = {name: value for name, value in told if not name.startswith("content-")}
        headers = {**self.headers, **news}
        return replace(self, headers=headers, retrieved_at=confirmation.retrieved_at)

    def json(self) -> Any:
        """Parse the body as JSON.

        Raises:
            SourceChanged: it is not JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            start = self.body[:80].decode("utf-8", errors="replace")
            raise SourceChanged(
                f"{self.url}: expected JSON, got {start!r} ({error}); see whether its API changed"
            ) from error


class RawCache:
    """Answers by request, one compressed file each, written all or nothing.

    A damaged file counts as absent, so nothing here waits for the disk (no fsync): what a power
    cut takes is fetched again. Of a request, nothing is stored but its answer's URL.

    Args:
        folder: local; made on the first write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, request: str) -> Fetched | None:
        """Return the answer to a request (any text that identifies it), or None.

        Raises:
            StorageError: it is there, but cannot be read.
        """
        path = self._path(request)
        try:
            data = zstandard.ZstdDecompressor().decompress(path.read_bytes())
            head, _, body = data.partition(b"\n")
            entry = json.loads(head)
            moment = dt.datetime.fromisoformat(entry["retrieved_at"])
            return Fetched(entry["url"], entry["headers"], body, moment)
        except (FileNotFoundError, zstandard.ZstdError, ValueError, KeyError, TypeError):
            return None
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error}; delete it to fetch anew") from error

    def save(self, request: str, fetched: Fetched) -> None:
        """Keep an answer.

        Raises:
            DiskFull: no space; nothing half-written is left.
            StorageError: the folder cannot be written.
        """
        entry = {
            "url": fetched.url,
            "headers": fetched.headers,
            "retrieved_at": fetched.retrieved_at.isoformat(),
        }
        data = json.dumps(entry).encode() + b"\n" + fetched.body
        packed = zstandard.ZstdCompressor(write_checksum=True).compress(data)
        path = self._path(request)
        with explain_disk_errors(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".tmp-", delete=False) as file:
                temporary = Path(file.name)
                try:
                    file.write(packed)
                    file.flush()
                    temporary.replace(path)
                finally:
                    temporary.unlink(missing_ok=True)

    def forget(self, hosts: Collection[str]) -> int:
        """Delete all that some hosts (``name`` or ``name:port``) have answered; return how much.

        What is damaged goes, too: it cannot be said whose it was.

        Raises:
            StorageError: a file cannot be deleted.
        """
        paths = [path for path in self._folder.glob("*/*") if _host_of(path) in {None, *hosts}]
        for path in paths:
            with explain_disk_errors(str(path)):
                path.unlink(missing_ok=True)
        return len(paths)

    def remove(self, request: str) -> None:
        """Forget an answer, if it is there.

        Raises:
            StorageError: the folder cannot be written.
        """
        path = self._path(request)
        with explain_disk_errors(str(path)):
            path.unlink(missing_ok=True)

    def _path(self, request: str) -> Path:
        digest = hashlib.sha256(request.encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.zst"


def _host_of(path: Path) -> str | None:
    """The host whose answer a file holds; None where it is no whole head of one."""
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            head = b""
            while b"\n" not in head:
                if not (block := reader.read(2**16)):
                    return None
                head += block
        return urlsplit(str(json.loads(head.partition(b"\n")[0])["url"])).netloc.lower()
    except (OSError, zstandard.ZstdError, ValueError, KeyError, TypeError):
        return None
