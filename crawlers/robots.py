"""What robots.txt of each host allows (RFC 9309)."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import protego

from core.errors import AccessRefused, ItemUnavailable, SourceError
from crawlers.raw_cache import Fetched, RawCache
from crawlers.urls import origin_of

AGENT = "tidemark"  # the product token that robots.txt is searched for
MAX_AGE = dt.timedelta(hours=24)  # RFC 9309, 2.4
MAX_BYTES = 2**20  # what comes after is passed over; RFC 9309, 2.5 asks for at least 500 KiB


class Robots:
    """The rules of the hosts that one fetcher asks; each is read once a day.

    Args:
        read: fetches a robots.txt; a host that has none gives an empty one.
        cache: keeps them; None where nothing is kept.
        exempt_paths: exact paths that need not be allowed (see ``SourceInfo``).
    """

    def __init__(
        self, read: Callable[[str], Fetched], cache: RawCache | None, exempt_paths: Sequence[str]
    ) -> None:
        self._read, self._cache = read, cache
        self._exempt_paths = frozenset(exempt_paths)
        self._known: dict[str, tuple[dt.datetime, protego.Protego]] = {}
        self._lock = threading.Lock()

    def obey(self, url: str) -> float:
        """Return the crawl delay of a URL's host in seconds.

        Raises:
            ItemUnavailable: robots.txt disallows the URL.
            AccessRefused: robots.txt cannot be read.
        """
        origin = origin_of(url)
        with self._lock:
            known = self._known.get(origin)
            if known is None or _is_stale(known[0]):
                known = self._known[origin] = self._load(f"{origin}/robots.txt")
        rules = known[1]
        is_exempt = urlsplit(url).path in self._exempt_paths
        if not is_exempt and not rules.can_fetch(url, AGENT):
            raise ItemUnavailable("robots", f"{origin}/robots.txt disallows {url} for {AGENT}")
        return float(rules.crawl_delay(AGENT) or 0.0)

    def _load(self, url: str) -> tuple[dt.datetime, protego.Protego]:
        fetched = self._cache.load(url) if self._cache else None
        if fetched is None or _is_stale(fetched.retrieved_at):
            try:
                fetched = self._read(url)
            except SourceError as error:
                raise AccessRefused(
                    f"cannot read {url}, and a host that does not say what it allows is left "
                    f"alone ({error})"
                ) from error
            if self._cache:
                self._cache.save(url, fetched)
        body = fetched.body
        if len(body) >= MAX_BYTES:  # the last line may be half a rule
            body = body[: body.rfind(b"\n") + 1]
        return fetched.retrieved_at, protego.Protego.parse(body.decode("utf-8-sig", "replace"))


def _is_stale(read_at: dt.datetime) -> bool:
    return dt.datetime.now(dt.UTC) - read_at > MAX_AGE
