"""Files by address: the transfer of one, bounded and checked.

    https://HOST/PATH                              redirects are followed, each checked again
    hf://datasets/OWNER/NAME[@REVISION]/PATH       a file of a data set of the Hugging Face hub
    s3://BUCKET/PATH                               with the keys of the environment

A file has a limit of bytes. No host outside the public internet is asked, except those that
settings name (``TIDEMARK_SITES__<KEY>``), which may also be http://. The user has chosen the file,
so robots.txt is not asked. Of a data set, the commit is recorded that the hub resolved the revision
to. The hub's own library is not used, because it bounds neither sizes nor redirects.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Collection
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import requests

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    StorageError,
    UsageError,
)
from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from core.version import own_version
from crawlers.imports.addresses import Origin
from crawlers.web import urls
from crawlers.web.connections import Sender, in_time, read_headers
from crawlers.web.download import Download
from crawlers.web.pacing import TryAgain, require_ok

HUB = "huggingface"  # key of the hub in ``TIDEMARK_SITES__HUGGINGFACE``
_HUB_URL = "https://huggingface.co"
_MAX_REDIRECTS = 5
_MAX_TRIES = 3
_BUSY = {429, 500, 502, 503, 504}
_REDIRECTS = {301, 302, 303, 307, 308}
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SCHEMES = {"http", "https", "hf", "s3"}
_DATA_SET = re.compile(
    r"hf://datasets/(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^/@]+))?/(?P<path>[^?#]+)", re.ASCII
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_UNSAFE = re.compile(r"[^\w.+=-]+")


def bring(address: str, folder: Path, settings: Settings, max_bytes: int) -> tuple[Path, Origin]:
    """Bring the file of an address into a folder; return its path and its origin.

    Errors are those of ``crawlers.imports.addresses.brought``.
    """
    _require_form(address)
    path = folder / _name_of(address)
    return path, _bring(address, path, settings, max_bytes)


def _require_form(address: str) -> None:
    """Raise UsageError for an address that has none of the forms."""
    found = _SCHEME.match(address)
    scheme = found[1].lower() if found else ""
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise UsageError(f"{ascii(address)} is no address: {error}") from error
    if scheme not in _SCHEMES:
        raise UsageError(
            f"an address of {scheme}:// cannot be imported; expected https://…, s3://… or "
            "hf://datasets/…, or the path of a file"
        )
    if "@" in parts.netloc and scheme in ("http", "https"):
        raise UsageError(
            f"{ascii(_without_query(address))} is given with a user or a key, which would be "
            "recorded; expected https://HOST/PATH without them"
        )


def _name_of(address: str) -> str:
    """Return a name for the file, with the suffix that tells its format."""
    last = unquote(urlsplit(address).path).rpartition("/")[2]
    return _UNSAFE.sub("_", last).lstrip(".")[-100:] or "file"


def _bring(address: str, path: Path, settings: Settings, max_bytes: int) -> Origin:
    """Download an address to a file; return where it came from, and its digest."""
    scheme = urlsplit(address).scheme.lower()
    if scheme == "s3":
        etag = _copy_object(f"s3{address[2:]}", path, max_bytes)
        return Origin(address, sha256_of_file(path), path.stat().st_size, etag=etag)
    url, asked = _hub_url(address, settings) if scheme == "hf" else (address, None)
    named = {urls.place_of_url(site) for site in settings.sites.values()}
    with path.open("wb") as file:
        transfer = _Transfer(url, file, max_bytes, named, _user_agent(settings))
        etag = transfer.run()
    commit = transfer.commit
    if scheme == "hf" and (commit is None or not _COMMIT.fullmatch(commit)):
        raise SourceChanged(f"{address}: the hub named no commit, so the file is not pinned")
    if asked and _COMMIT.fullmatch(asked) and asked != commit:
        raise SourceChanged(f"{address}: the hub answered with commit {commit}")
    plain = address if scheme == "hf" else _without_query(address)
    revision = commit if scheme == "hf" else None
    size = path.stat().st_size
    return Origin(plain, transfer.digest.hexdigest(), size, revision, etag)


def _hub_url(address: str, settings: Settings) -> tuple[str, str | None]:
    """Return the URL of a file of a data set, and the revision that the address names."""
    found = _DATA_SET.fullmatch(address)
    if found is None or not {".", ".."}.isdisjoint(unquote(address).split("/")):
        raise UsageError(f"{address} is no file; expected hf://datasets/OWNER/NAME@REVISION/PATH")
    asked = unquote(found["revision"]) if found["revision"] else None
    site = settings.sites.get(HUB, _HUB_URL).rstrip("/")
    revision = quote(asked or "main", safe="")
    path = quote(unquote(found["path"]))
    return f"{site}/datasets/{found['name']}/resolve/{revision}/{path}", asked


def _copy_object(address: str, path: Path, max_bytes: int) -> str | None:
    """Copy an object; return its tag. Raise UsageError if there is none."""
    parent, _, name = address.rpartition("/")
    if not name or parent.count("/") < 2:
        raise UsageError(f"{address} is no file; expected s3://BUCKET/PATH")
    store = Store(parent)
    stamp = store.list_stamped(glob.escape(name)).get(name)
    if stamp is None:
        raise UsageError(f"there is no object {address}")
    if stamp.num_bytes > max_bytes:
        raise _too_large(address, max_bytes)
    store.fetch(name, path)
    if path.stat().st_size != stamp.num_bytes:
        raise StorageError(f"{address} was replaced meanwhile; run the same command again")
    return stamp.tag.strip('"') or None


def _user_agent(settings: Settings) -> str:
    return f"tidemark/{own_version()} ({settings.contact})"


def _without_query(address: str) -> str:
    """Return an address without what may be a key: user, query and fragment."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _too_large(address: str, max_bytes: int) -> ItemUnavailable:
    why = f"{address} is larger than {max_bytes} bytes; --max-download is the limit in MiB"
    return ItemUnavailable("too_large", why)


class _Transfer:
    """A file in transfer from a public host, or from one that the settings name.

    A public host may not lead to one that the settings name, which may be private.
    """

    def __init__(
        self,
        url: str,
        file: IO[bytes],
        max_bytes: int,
        named: Collection[tuple[str, int] | None],
        agent: str,
    ) -> None:
        self.digest = hashlib.sha256()
        self.commit: str | None = None  # that the first host named, if it is a hub
        self._url = url
        self._plain = _without_query(url)  # for messages
        self._file = file
        self._max_bytes = max_bytes
        is_named = urls.place_of_url(url) in named
        self._own = {place for place in named if place} if is_named else set()
        self._sender = Sender(self._own)
        self._download = Download(self._take, max_bytes)
        self._headers = {"User-Agent": agent, "Accept": "*/*"}

    def _take(self, block: bytes) -> None:
        self._file.write(block)
        self.digest.update(block)

    def run(self) -> str | None:
        """Transfer the file, and return its ETag."""
        attempt = 1
        while True:
            try:
                return self._follow()
            except ItemUnavailable as error:
                if error.reason == "too_large":
                    raise _too_large(self._plain, self._max_bytes) from error
                raise
            except TryAgain as failure:
                if attempt == _MAX_TRIES:
                    raise ItemFailed(
                        failure.reason, f"{self._plain} failed {_MAX_TRIES} times: {failure}"
                    ) from failure
                attempt += 1

    def _follow(self) -> str | None:
        """Send the request, follow redirects, and write the body; return its ETag."""
        url = self._url
        for _ in range(_MAX_REDIRECTS + 1):
            self._require_allowed(url)
            shown = _without_query(url)
            with in_time(shown), self._send(url) as response:
                headers = read_headers(response, shown)
                status = response.status_code
                if status in _BUSY:
                    reason = "http_429" if status == 429 else "http_5xx"
                    raise TryAgain(f"{shown} answered {status}", reason=reason)
                if urls.origin_of(url) == urls.origin_of(self._url):
                    self.commit = headers.get("x-repo-commit", self.commit)
                if status not in _REDIRECTS:
                    if not self._download.receive(response, shown):
                        require_ok(status, shown)
                    return headers.get("etag")
                target = self._sender.redirect_of(response)
            url = urls.follow(url, target or "")
        raise SourceChanged(f"{self._plain} redirects more than {_MAX_REDIRECTS} times")

    def _send(self, url: str) -> requests.Response:
        return self._sender.send(url, {**self._headers, **self._download.headers})

    def _require_allowed(self, url: str) -> None:
        """Raise an error for a URL that is no web address, or is not to be asked."""
        place = urls.place_of_url(url)
        shown = _without_query(url)
        if place is None:
            raise UsageError(f"{shown!r} is no address of a file; expected https://HOST/PATH")
        if place in self._own:
            return
        advice = "if it is meant, name it in a setting: TIDEMARK_SITES__<KEY>"
        if urlsplit(url).scheme != "https":
            raise AccessRefused(
                f"{shown} is not https, so anyone on the way can alter it; {advice}"
            )
        if urls.is_private_address(place[0]):
            raise AccessRefused(f"{shown} is not on the public internet; {advice}")
