"""The rules of robots.txt (RFC 9309) for the hosts of a source."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable

import protego

from core.errors import AccessRefused, ItemUnavailable, SourceError
from crawlers.web import urls
from crawlers.web.raw_cache import Fetched, RawCache

ROBOTS_AGENT = "tidemark"  # name of this crawler in robots.txt (product token)
ROBOTS_MAX_AGE = dt.timedelta(hours=24)  # maximum age of a robots.txt (RFC 9309, 2.4)
ROBOTS_MAX_BYTES = 2**20  # bytes read of a robots.txt; RFC 9309, 2.5 asks for at least 500 KiB


class Robots:
    """The robots.txt rules of a fetcher's hosts; each file is read once a day.

    ``read`` fetches a robots.txt; a host without robots.txt counts as one with an empty file.
    ``is_exempt`` tells which URLs may be requested even if robots.txt disallows them.
    """

    def __init__(
        self,
        read: Callable[[str], Fetched],
        cache: RawCache | None,
        is_exempt: Callable[[str], bool],
    ) -> None:
        self._read = read
        self._cache = cache
        self._is_exempt = is_exempt
        self._known: dict[str, tuple[dt.datetime, protego.Protego]] = {}
        self._lock = threading.Lock()

    def obey(self, url: str) -> float:
        """Return the crawl delay of a URL's host in seconds, or raise an error.

        Raise ItemUnavailable if robots.txt disallows the URL; AccessRefused if it is unreadable.
        """
        origin = urls.origin_of(url)
        with self._lock:
            known = self._known.get(origin)
            if known is None or _is_stale(known[0]):
                known = self._known[origin] = self._load(f"{origin}/robots.txt")
        rules = known[1]
        if not rules.can_fetch(url, ROBOTS_AGENT) and not self._is_exempt(url):
            raise ItemUnavailable(
                "robots", f"{origin}/robots.txt disallows {url} for {ROBOTS_AGENT}"
            )
        return float(rules.crawl_delay(ROBOTS_AGENT) or 0.0)

    def _load(self, url: str) -> tuple[dt.datetime, protego.Protego]:
        """Return when a robots.txt was read, and its rules; use a cached file of the last day."""
        fetched = self._cache.load(url) if self._cache else None
        if fetched is None or _is_stale(fetched.retrieved_at):
            try:
                fetched = self._read(url)
            except SourceError as error:
                raise AccessRefused(
                    f"cannot read {url}, and without robots.txt no page of the host is requested "
                    f"({error})"
                ) from error
            if self._cache:
                self._cache.save(url, fetched)
        body = fetched.body
        if len(body) >= ROBOTS_MAX_BYTES:  # the last line may be cut off
            body = body[: body.rfind(b"\n") + 1]
        return fetched.retrieved_at, protego.Protego.parse(body.decode("utf-8-sig", "replace"))


def _is_stale(read_at: dt.datetime) -> bool:
    return dt.datetime.now(dt.UTC) - read_at > ROBOTS_MAX_AGE
