"""The polite fetcher: the only way to the network (git aside).

It asks robots.txt first, keeps its distance between two requests to a host, waits when a site says
so, gives up rather than insist, and trusts nothing it is sent: hosts, sizes, times and redirects
are capped. What it fetched once it reads from disk the next time.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib.metadata
import logging
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import protego
import requests
import urllib3
from requests.structures import CaseInsensitiveDict

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    SourceError,
    SourceUnavailable,
    UnknownName,
    UsageError,
)
from core.settings import Settings
from crawlers.pacing import TryAgain, host_of, read_retry_after
from crawlers.raw_cache import Fetched, RawCache
from crawlers.transfer import read_body, too_large
from crawlers.urls import follow, host_of_url, normalise, origin_of

__all__ = ["DEFAULT_MAX_BYTES", "Fetched", "Fetcher"]

AGENT = "tidemark"  # the product token that robots.txt is searched for
DEFAULT_MAX_BYTES = 32 * 2**20
MAX_TRIES = 5
MAX_REDIRECTS = 5
REFUSALS_TO_STOP = 10  # answers 403 or 429 in a row
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0  # without a single byte
ROBOTS_MAX_AGE = dt.timedelta(hours=24)  # RFC 9309, 2.4
ROBOTS_MAX_BYTES = 2**20  # RFC 9309, 2.5 asks for at least 500 KiB

_WORTH_ANOTHER_TRY = {429, 500, 502, 503, 504}
_DROP_REASONS = {403: "http_403", 404: "http_404", 410: "http_410", 451: "permission"}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_COUNTED = ("requests", "cached", "retries", "2xx", "3xx", "4xx", "5xx", "bytes", "wait_ms")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Ask:
    """What one call of ``get`` wants, or the reading of one robots.txt."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = DEFAULT_MAX_BYTES
    is_busy: Callable[[Fetched], bool] | None = None
    is_robots: bool = False


class _Answer(NamedTuple):
    status: int
    fetched: Fetched  # with a body only where the status is 200
    redirect: str | None


class Fetcher:
    """Fetches pages of a source's sites, politely.

    May be used by several threads. Fetchers of one process share the pace of a host.

    Args:
        settings: its ``sites``, ``request_interval_s`` and ``contact`` are used, its scratch
            folder holds the cache.
        sites: default base URL by key.
        request_interval_s: seconds between two requests to one host; ``robots.txt`` may ask for
            more.
        redirect_hosts: where a site may redirect to, besides the sites' own hosts; ``name`` or
            ``name:port``.
        use_cache: read and write the cache on disk.
        robots_exempt_paths: exact paths that robots.txt need not allow (see ``SourceInfo``).

    Attributes:
        user_agent: how we name ourselves to the sites.
        stats: counts for the manifest: requests, cached, retries, 2xx … 5xx, bytes (on the wire),
            wait_ms (for one's turn, pauses included).

    Raises:
        UsageError: a base URL or the contact cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        sites: Mapping[str, str],
        request_interval_s: float,
        redirect_hosts: Sequence[str] = (),
        use_cache: bool = True,
        robots_exempt_paths: Sequence[str] = (),
    ) -> None:
        self._sites = {key: settings.sites.get(key, url).rstrip("/") for key, url in sites.items()}
        self._hosts = {_host_of_site(key, url) for key, url in self._sites.items()}
        self._hosts |= {host.lower() for host in redirect_hosts}
        given = settings.request_interval_s
        self._interval_s = request_interval_s if given is None else given
        self._robots_exempt_paths = frozenset(robots_exempt_paths)
        self._cache = RawCache(settings.scratch / "http-cache") if use_cache else None
        self._session = requests.Session()
        library = requests.utils.default_user_agent()
        self.user_agent = f"{AGENT}/{_version()} (+{settings.contact}) {library}"
        _require_sendable({"User-Agent (its contact is TIDEMARK_CONTACT)": self.user_agent})
        self._robots: dict[str, tuple[dt.datetime, protego.Protego]] = {}
        self._robots_lock = threading.Lock()
        self._lock = threading.Lock()  # of what follows
        self._refusals = 0
        self.stats: dict[str, int] = dict.fromkeys(_COUNTED, 0)

    def base_url(self, key: str) -> str:
        """Return a site's base URL, without a slash at the end.

        Raises:
            UnknownName: the source has no such site.
        """
        if key not in self._sites:
            raise UnknownName("site", key, sorted(self._sites))
        return self._sites[key]

    def get(
        self,
        key: str,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        is_busy: Callable[[Fetched], bool] | None = None,
    ) -> Fetched:
        """Fetch one page, from the cache where it is there.

        Args:
            key: of the site.
            path: follows the base URL; may hold a query.
            params: the query, sent in sorted order.
            headers: sent to the site itself, never to a host it redirects to; never stored.
            max_bytes: cap on the body, packed and unpacked.
            is_busy: tells an answer 200 that means "try later" (an overloaded MediaWiki); it is
                then treated like a 503.

        Returns:
            The answer; its status was 200.

        Raises:
            ItemUnavailable: this page cannot be had: 403, 404, 410, 451, disallowed by robots.txt,
                too large or too slow.
            ItemFailed: this address failed every time.
            SourceUnavailable: the site refuses us, or asks for a long pause.
            SourceChanged: the site answers what HTTP or our request does not explain.
            AccessRefused: 401, a redirect to a host off the list, or an unreadable robots.txt.
        """
        headers = CaseInsensitiveDict(headers or {})
        _require_sendable(headers)
        url = normalise(self.base_url(key) + path, params)
        request = f"GET {url}\nAccept: {headers.get('Accept', '')}"
        fetched = self._cache.load(request) if self._cache else None
        if fetched:
            self._count(cached=1)
        else:
            answer = self._persist(_Ask(url, headers, max_bytes, is_busy))
            _require_ok(answer)
            fetched = answer.fetched
            if self._cache:
                self._cache.save(request, fetched)
        if len(fetched.body) > max_bytes:
            raise too_large(url, max_bytes)
        return fetched

    def _persist(self, ask: _Ask) -> _Answer:
        """Follow a URL to its answer, again where the failure may pass."""
        attempt = 1
        while True:
            try:
                return self._follow(ask)
            except TryAgain as failure:
                if attempt == MAX_TRIES:
                    raise ItemFailed(
                        failure.reason,
                        f"{ask.url} failed {MAX_TRIES} times, at last: {failure}; "
                        "run the same command again later",
                    ) from failure
                _log.info("trying again: %s", failure)
                self._count(retries=1)
                attempt += 1

    def _follow(self, ask: _Ask) -> _Answer:
        """Follow redirects by hand, so that each hop meets the same checks as the first URL."""
        url, headers = ask.url, ask.headers
        for _ in range(MAX_REDIRECTS + 1):
            self._require_known_host(url, ask.url)
            delay_s = 0.0 if ask.is_robots else self._obey_robots(url)
            answer = self._exchange(url, headers, ask, max(delay_s, self._interval_s))
            if answer.redirect is None:
                return answer
            target = follow(url, answer.redirect)
            if origin_of(target) != origin_of(url):
                headers = {}  # they may hold a token, which is for the site alone
            url = target
        raise SourceChanged(f"{ask.url} redirects more than {MAX_REDIRECTS} times, last to {url}")

    def _require_known_host(self, url: str, asked_url: str) -> None:
        """Refuse what is not a page of a known host: a consent wall, or a machine of our own."""
        host = host_of_url(url)
        if host is None or host not in self._hosts:
            raise AccessRefused(
                f"{asked_url} leads to {url}, which is on none of this source's hosts "
                f"({', '.join(sorted(self._hosts))}); nothing was fetched from there"
            )
        if urlsplit(asked_url).scheme == "https" and urlsplit(url).scheme == "http":
            raise AccessRefused(f"{asked_url} leads to {url}, which anyone on the way can alter")

    def _exchange(
        self, url: str, headers: Mapping[str, str], ask: _Ask, interval_s: float
    ) -> _Answer:
        """Send one request, when it is its turn, and read the answer."""
        self._refuse_if_refused()
        with host_of(host_of_url(url) or url).turn(interval_s) as waited_s:
            self._count(requests=1, wait_ms=round(waited_s * 1000))
            with _network_errors_as_try_again(url), self._send(url, headers) as response:
                self._note_status(response.status_code)
                answer = self._read(response, url, ask.max_bytes)
            pause_s = read_retry_after(answer.fetched.headers.get("retry-after"))
            if answer.status in _WORTH_ANOTHER_TRY:
                reason = "http_429" if answer.status == 429 else "http_5xx"
                raise TryAgain(f"{url} answered {answer.status}", pause_s, reason)
            if answer.status == 200 and ask.is_busy and ask.is_busy(answer.fetched):
                raise TryAgain(f"{url} answered that it is busy", pause_s, "http_5xx")
            return answer

    def _send(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        merged = CaseInsensitiveDict({"Accept": "*/*", **headers})
        merged.update({"User-Agent": self.user_agent, "Accept-Encoding": "gzip"})
        # Prepared without the session: its cookies and a .netrc have no place here.
        request = requests.Request("GET", url, headers=merged).prepare()
        # Session.send would read the whole body of a redirect, however large.
        return self._session.get_adapter(url).send(
            request, stream=True, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S), **self._route(url)
        )

    def _route(self, url: str) -> Mapping[str, Any]:
        """Proxy and certificates of this machine; no proxy reaches its loopback."""
        if urlsplit(url).hostname in _LOOPBACK:
            return {"proxies": {}}
        found = self._session.merge_environment_settings(url, {}, None, None, None)
        return {"proxies": found["proxies"], "verify": found["verify"]}

    def _read(self, response: requests.Response, url: str, max_bytes: int) -> _Answer:
        redirect = self._session.get_redirect_target(response)
        headers = {name.lower(): value for name, value in response.headers.items()}
        headers.pop("set-cookie", None)  # a session's secret
        try:
            is_wanted = response.status_code == 200
            body = read_body(response, url, max_bytes) if is_wanted else b""
        finally:
            self._count(bytes=response.raw.tell())
        return _Answer(
            response.status_code, Fetched(url, headers, body, dt.datetime.now(dt.UTC)), redirect
        )

    def _obey_robots(self, url: str) -> float:
        """Return the crawl delay of a URL's host in seconds.

        Raises:
            ItemUnavailable: robots.txt disallows the URL.
        """
        origin = origin_of(url)
        with self._robots_lock:
            known = self._robots.get(origin)
            if known is None or _is_stale(known[0]):
                known = self._robots[origin] = self._read_robots(origin)
        rules = known[1]
        is_exempt = urlsplit(url).path in self._robots_exempt_paths
        if not is_exempt and not rules.can_fetch(url, AGENT):
            raise ItemUnavailable("robots", f"{origin}/robots.txt disallows {url} for {AGENT}")
        return float(rules.crawl_delay(AGENT) or 0.0)

    def _read_robots(self, origin: str) -> tuple[dt.datetime, protego.Protego]:
        url = f"{origin}/robots.txt"
        fetched = self._cache.load(url) if self._cache else None
        if fetched is None or _is_stale(fetched.retrieved_at):
            try:
                answer = self._persist(_Ask(url, max_bytes=ROBOTS_MAX_BYTES, is_robots=True))
                has_none = 400 <= answer.status < 500  # then all is allowed: RFC 9309, 2.3.1.3
                if not has_none:
                    _require_ok(answer)
            except SourceError as error:
                raise AccessRefused(
                    f"cannot read {url}, and a host that does not say what it allows is left "
                    f"alone ({error})"
                ) from error
            fetched = answer.fetched
            if self._cache:
                self._cache.save(url, fetched)
        text = fetched.body.decode("utf-8-sig", errors="replace")
        return fetched.retrieved_at, protego.Protego.parse(text)

    def _note_status(self, status: int) -> None:
        """Count the answer, and the refusals in a row."""
        self._count(**{f"{status // 100}xx": 1})
        with self._lock:
            if status in {403, 429}:
                self._refusals += 1
            elif not 300 <= status < 400:  # a redirect may lead to the next refusal
                self._refusals = 0

    def _refuse_if_refused(self) -> None:
        with self._lock:
            if self._refusals >= REFUSALS_TO_STOP:
                raise SourceUnavailable(
                    f"{self._refusals} requests in a row were refused (403 or 429), so no more "
                    f"are sent to {', '.join(self._sites.values())} in this run; "
                    "wait some hours, or raise TIDEMARK_REQUEST_INTERVAL_S"
                )

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self.stats[name] = self.stats.get(name, 0) + number


def _version() -> str:
    try:
        return importlib.metadata.version(AGENT)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "checkout"


def _require_sendable(headers: Mapping[str, str]) -> None:
    """Refuse what would break a header apart; the value may be a secret and is not shown."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise UsageError(
                f"the header {name} holds a line break or another character that HTTP does not "
                "allow; see the setting it is made of"
            )


def _is_stale(robots_read_at: dt.datetime) -> bool:
    return dt.datetime.now(dt.UTC) - robots_read_at > ROBOTS_MAX_AGE


def _host_of_site(key: str, url: str) -> str:
    host = host_of_url(url)
    if host is None:
        raise UsageError(
            f"the address of site {key!r} is {url!r}; expected http://… or https://… "
            f"without a password (TIDEMARK_SITES__{key.upper()})"
        )
    return host


def _require_ok(answer: _Answer) -> None:
    """Raise what an answer other than 200 means."""
    status, url = answer.status, answer.fetched.url
    if status == 200:
        return
    if reason := _DROP_REASONS.get(status):
        raise ItemUnavailable(reason, f"{url} answered {status}")
    if status == 401:
        raise AccessRefused(
            f"{url} answered 401: it wants a token, or does not accept the one sent"
        )
    if status >= 500:
        message = f"{url} answered {status}; run the same command again later"
        raise ItemFailed("http_5xx", message)
    raise SourceChanged(f"{url} answered {status}, which this source never did; expected 200")


@contextlib.contextmanager
def _network_errors_as_try_again(url: str) -> Iterator[None]:
    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError, zlib.error) as error:
        raise TryAgain(f"{url}: {type(error).__name__}: {error}") from error
