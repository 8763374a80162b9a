"""Raw cache: responses on disk, from which a new run parses pages without new requests."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zstandard

from core.errors import SourceChanged
from core.storage.store import explain_disk_errors
from core.storage.temporary import prefix_of_mine, sweep
from crawlers.web.times import read_time
from crawlers.web.urls import is_sendable
from crawlers.web.values import load_json

MAX_ENTRY_BYTES = 2**31  # decompressed; a damaged file may claim to have any size


@dataclass(frozen=True)
class Fetched:
    """A response of status 200."""

    url: str  # final URL, after redirects
    headers: dict[str, str]  # response headers by lower-case name, without Set-Cookie
    body: bytes  # decompressed bytes; not decoded, since the declared charset may be wrong
    retrieved_at: dt.datetime  # UTC time of the site's response, also for a cache hit

    @property
    def validators(self) -> dict[str, str]:
        """Return the request headers that revalidate this response (RFC 9110, 13.1)."""
        pairs = (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified"))
        values = ((name, self.headers.get(theirs, "")) for name, theirs in pairs)
        return {name: value for name, value in values if value and is_sendable(value)}

    def renewed(self, confirmation: Fetched) -> Fetched:
        """Return a copy with the headers and time of a response 304 that confirms this response."""
        confirmed = confirmation.headers.items()
        changes = {name: value for name, value in confirmed if not name.startswith("content-")}
        headers = {**self.headers, **changes}
        return replace(self, headers=headers, retrieved_at=confirmation.retrieved_at)

    def json(self) -> Any:
        """Parse the body as JSON, or raise SourceChanged."""
        try:
            return load_json(self.body)
        except ValueError as error:
            start = self.body[:80].decode("utf-8", errors="replace")
            raise SourceChanged(
                f"{self.url}: expected JSON, got {start!r} ({error}); see whether its API changed"
            ) from error


class RawCache:
    """Cache of responses by request: one compressed file per response, written atomically.

    A damaged or unreadable file counts as absent and is replaced, so no fsync is needed. Responses
    that are lost in a power cut are fetched again. A file contains the response's final URL, but
    not the request.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._swept: set[Path] = set()

    def load(self, request: str) -> Fetched | None:
        """Return the response to a request (any text that identifies it); None if not stored."""
        path = self._path(request)
        try:
            packed = path.read_bytes() if path.is_file() else b""
            if not 0 <= zstandard.frame_content_size(packed) <= MAX_ENTRY_BYTES:
                return None
            data = zstandard.ZstdDecompressor().decompress(packed)
            head, _, body = data.partition(b"\n")
            entry = load_json(head)
            url = entry["url"]
            headers = entry["headers"]
            moment = read_time(entry["retrieved_at"])
        except (OSError, zstandard.ZstdError, ValueError, LookupError, TypeError):
            return None
        if not isinstance(url, str) or not isinstance(headers, dict) or moment is None:
            return None
        is_text = all(isinstance(value, str) for value in headers.values())
        return Fetched(url, headers, body, moment) if is_text else None

    def save(self, request: str, fetched: Fetched) -> None:
        """Store a response; leave no partial file if the disk is full (DiskFull)."""
        entry = {
            "url": fetched.url,
            "headers": fetched.headers,
            "retrieved_at": fetched.retrieved_at.isoformat(),
        }
        data = json.dumps(entry).encode() + b"\n" + fetched.body
        packed = zstandard.ZstdCompressor(write_checksum=True).compress(data)
        path = self._path(request)
        with explain_disk_errors(str(path)):
            if path.parent.is_file():
                path.parent.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                _delete(path)
            if path.parent not in self._swept:  # once: a folder may have thousands of files
                sweep(path.parent)
                self._swept.add(path.parent)
            with tempfile.NamedTemporaryFile(
                dir=path.parent, prefix=prefix_of_mine(""), delete=False
            ) as file:
                temporary = Path(file.name)
                try:
                    file.write(packed)
                    file.flush()
                    temporary.replace(path)
                finally:
                    temporary.unlink(missing_ok=True)

    def forget(self, hosts: Collection[str]) -> int:
        """Delete all responses of some hosts (``name`` or ``name:port``); return their number."""
        # Damaged files are also deleted, since their host is unknown.
        paths = [path for path in self._folder.glob("*/*") if _host_of(path) in {None, *hosts}]
        for path in paths:
            _delete(path)
        return len(paths)

    def remove(self, request: str) -> None:
        """Delete the response to a request, if stored."""
        _delete(self._path(request))

    def _path(self, request: str) -> Path:
        digest = hashlib.sha256(request.encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.zst"


def _delete(path: Path) -> None:
    with explain_disk_errors(str(path)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _host_of(path: Path) -> str | None:
    """Return the host of a stored response; None for a damaged file."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            head = b""
            while b"\n" not in head:
                block = reader.read(2**16)
                if not block:
                    return None
                head += block
        return urlsplit(str(load_json(head.partition(b"\n")[0])["url"])).netloc.lower()
    except (OSError, zstandard.ZstdError, ValueError, LookupError, TypeError):
        return None
