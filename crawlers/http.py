"""The polite fetcher: the only way to the network (git aside).

It asks robots.txt first, keeps its distance between two requests to a host, waits when a site says
so, gives up rather than insist, and trusts nothing it is sent: hosts, sizes, times and redirects
are capped. What it fetched once it reads from disk the next time.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import urlsplit

import requests
from pydantic import SecretStr
from requests.structures import CaseInsensitiveDict

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    TidemarkError,
    UnknownName,
    UsageError,
)
from core.settings import Settings
from crawlers import robots
from crawlers.addresses import is_private_address
from crawlers.api_rules import ApiRules, require_ok
from crawlers.circuit import Circuit
from crawlers.connections import Sender
from crawlers.pacing import Pace, TryAgain, Turnstile, read_retry_after
from crawlers.raw_cache import Fetched, RawCache
from crawlers.tokens import Tokens
from crawlers.transfer import in_time, read_body, read_headers, too_large
from crawlers.urls import (
    follow,
    host_of_url,
    is_sendable,
    normalise,
    origin_of,
    place_of_url,
)

__all__ = ["DEFAULT_MAX_BYTES", "Fetched", "Fetcher"]

DEFAULT_MAX_BYTES = 32 * 2**20
MAX_TRIES = 5
MAX_REDIRECTS = 5

_WORTH_ANOTHER_TRY = {429, 500, 502, 503, 504}
_COUNTED = ("requests", "cached", "retries", "2xx", "3xx", "304", "4xx", "5xx", "bytes", "wait_ms")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Ask:
    """What one call of ``get`` wants, or the reading of one robots.txt."""

    url: str  # without what is secret: for messages, files and robots.txt
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_params: Mapping[str, str] = field(default_factory=dict)
    known: Fetched | None = None  # still good, if the site says so
    max_bytes: int = DEFAULT_MAX_BYTES
    is_busy: Callable[[Fetched], bool] | None = None
    rules: ApiRules | None = None
    is_robots: bool = False


class _Hop(NamedTuple):
    """One request on the way to an answer."""

    url: str  # as in _Ask
    sent_url: str
    headers: Mapping[str, str]


class _Answer(NamedTuple):
    status: int
    fetched: Fetched  # with a body where the status is 200, or an error and rules are to read it
    redirect: str | None


class Fetcher:
    """Fetches pages of a source's sites, politely.

    May be used by several threads. All fetchers with the same scratch folder share a host's pace.

    Args:
        settings: its ``sites``, ``tokens``, ``request_interval_s`` and ``contact`` are used, its
            scratch folder holds the cache and the pace of hosts.
        sites: default base URL by key.
        request_interval_s: seconds between two requests to one host; ``robots.txt`` may ask for
            more.
        redirect_hosts: where a site may redirect to, besides the sites' own hosts; ``name`` or
            ``name:port``.
        use_cache: read and write the cache on disk.
        robots_exempt_paths: exact paths that robots.txt need not allow (see ``SourceInfo``).
        revalidates: ask the site whether what is in the cache is still good, in place of taking it.
        shares_pace: the sites have one pace, and one connection, together.
        turnstile: to share the pace with other machines (see ``Pace``).

    Attributes:
        user_agent: how we name ourselves to the sites.
        stats: counts for the manifest: requests, cached, retries, 2xx … 5xx, 304, bytes (on the
            wire), wait_ms (for one's turn, pauses included).

    Raises:
        UsageError: a base URL, a token or the contact cannot be used.
    """

    def __init__(  # noqa: PLR0913 - what a source declares, and what a run chooses
        self,
        settings: Settings,
        sites: Mapping[str, str],
        request_interval_s: float,
        redirect_hosts: Sequence[str] = (),
        use_cache: bool = True,
        robots_exempt_paths: Sequence[str] = (),
        *,
        revalidates: bool = False,
        shares_pace: bool = False,
        turnstile: Turnstile | None = None,
    ) -> None:
        self._sites = {key: settings.sites.get(key, url).rstrip("/") for key, url in sites.items()}
        hosts = [_host_of_site(key, url) for key, url in self._sites.items()]
        self._hosts = {*hosts, *(host.lower() for host in redirect_hosts)}
        self._shared_pace = hosts[0] if shares_pace and hosts else None
        given = settings.request_interval_s
        self._interval_s = request_interval_s if given is None else given
        self._cache = RawCache(settings.scratch / "http-cache") if use_cache else None
        self._revalidates = revalidates
        self._pace = Pace(settings.scratch / "pace", turnstile)
        self._robots = robots.Robots(self._read_robots, self._cache, robots_exempt_paths)
        self._tokens = Tokens(settings.tokens)
        self._circuit = Circuit(", ".join(self._sites.values()))
        self._own = {place for url in settings.sites.values() if (place := place_of_url(url))}
        self._sender = Sender(self._own)
        library = requests.utils.default_user_agent()
        self.user_agent = f"{robots.AGENT}/{_version()} (+{settings.contact}) {library}"
        _require_sendable({"User-Agent (its contact is TIDEMARK_CONTACT)": self.user_agent})
        self._rules: dict[str, ApiRules] = {}
        self._lock = threading.Lock()  # of what follows
        self.stats: dict[str, int] = dict.fromkeys(_COUNTED, 0)
        self._answered: list[str] = []  # requests of this run whose answers are in the cache
        self._last: str | None = None  # the last of them, unless a later request failed

    def base_url(self, key: str) -> str:
        """Return a site's base URL, without a slash at the end.

        Raises:
            UnknownName: the source has no such site.
        """
        if key not in self._sites:
            raise UnknownName("site", key, sorted(self._sites))
        return self._sites[key]

    def token(self, key: str) -> SecretStr | None:
        """Return the token that settings have for a site, or None."""
        return self._tokens.of(key)

    def heed(self, key: str, rules: ApiRules) -> None:
        """Read the answers of a site by the rules of its API from now on."""
        self._rules[key] = rules

    def get(  # noqa: PLR0913 - what a request is made of
        self,
        key: str,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        secret_params: Mapping[str, SecretStr] | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        is_busy: Callable[[Fetched], bool] | None = None,
    ) -> Fetched:
        """Fetch one page, from the cache where it is there.

        Args:
            key: of the site.
            path: follows the base URL; may hold a query.
            params: the query, sent in sorted order.
            headers: sent to the site itself, never to a host it redirects to; never stored.
            secret_params: more of the query, which appears in no file, message or log, nor in
                what is returned. With and without them it is the same page.
            max_bytes: cap on the body, packed and unpacked.
            is_busy: tells an answer 200 that means "try later" (an overloaded MediaWiki); it is
                then treated like a 503.

        Returns:
            The answer; its status was 200. Where the site repeats a token of ours, it is taken out.

        Raises:
            ItemUnavailable: this page cannot be had: 403, 404, 410, 451, disallowed by robots.txt,
                or too large.
            ItemFailed: this address failed every time, or was too slow.
            SourceUnavailable: the site refuses us, fails again and again, or asks for a long pause.
            SourceChanged: the site answers what HTTP or our request does not explain.
            AccessRefused: 401, a redirect to a host off the list, an address that is not of the
                public internet, or an unreadable robots.txt.
        """
        headers = CaseInsensitiveDict(headers or {})
        _require_sendable(headers)
        secrets = {
            name: self._tokens.learn(value, f"the parameter {name} of {key}")
            for name, value in (secret_params or {}).items()
        }
        try:
            url = normalise(self.base_url(key) + path, params)
            rules = self._rules.get(key)
            return self._get(_Ask(url, headers, secrets, None, max_bytes, is_busy, rules))
        except TidemarkError as error:
            hidden = self._tokens.hidden(error)
            if hidden is None:
                raise
        raise hidden  # out here, so that the one with the token is not its context

    def _get(self, ask: _Ask) -> Fetched:
        self._last = None
        request = f"GET {ask.url}\nAccept: {ask.headers.get('Accept', '')}"
        fetched = self._cache.load(request) if self._cache else None
        if fetched and not self._revalidates:
            self._count(cached=1)
        else:
            fetched = self._fetch(replace(ask, known=fetched))
            if self._cache:
                self._cache.save(request, fetched)
        self._last = request
        self._answered.append(request)
        if len(fetched.body) > ask.max_bytes:
            raise too_large(ask.url, ask.max_bytes)
        return fetched

    def forget(self, last_only: bool) -> None:
        """Take the answers of this run out of the cache, as they were no good.

        Args:
            last_only: only that of the last request, and that only if it was answered.
        """
        last = [self._last] if self._last else []
        for request in last if last_only else self._answered:
            if self._cache:
                self._cache.remove(request)

    def _fetch(self, ask: _Ask) -> Fetched:
        """Ask for one address, and count it if it fails."""
        try:
            answer = self._persist(ask)
            status, found, known = answer.status, answer.fetched, ask.known
            if status == 304 and known and known.validators and known.url == found.url:
                self._count(**{"304": 1})
                found = known.renewed(found)
            else:
                require_ok(answer.status, answer.fetched.url, ask.rules)
        except (ItemFailed, ItemUnavailable) as error:
            self._circuit.note_address(has_failed=isinstance(error, ItemFailed))
            raise
        self._circuit.note_address(has_failed=False)
        return found

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
                _log.info("trying again: %s", self._tokens.hide(str(failure)))
                self._count(retries=1)
                attempt += 1

    def _follow(self, ask: _Ask) -> _Answer:
        """Follow redirects by hand, so that each hop meets the same checks as the first URL."""
        sent_url = normalise(ask.url, ask.secret_params) if ask.secret_params else ask.url
        hop = _Hop(ask.url, sent_url, ask.headers)
        for _ in range(MAX_REDIRECTS + 1):
            self._require_known_host(hop.url, ask.url)
            delay_s = 0.0 if ask.is_robots else self._robots.obey(hop.url)
            answer = self._exchange(hop, ask, max(delay_s, self._interval_s))
            if answer.redirect is None:
                return answer
            target = follow(hop.url, answer.redirect)
            url = self._tokens.hide(target)
            if origin_of(target) == origin_of(hop.url):
                hop = _Hop(url, target, hop.headers)
            else:
                hop = _Hop(url, url, {})  # tokens are for the site alone
        raise SourceChanged(
            f"{ask.url} redirects more than {MAX_REDIRECTS} times, last to {hop.url}"
        )

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
        if place_of_url(url) not in self._own and is_private_address(urlsplit(url).hostname or ""):
            raise AccessRefused(
                f"{asked_url} leads to {url}, which is not on the public internet; if it is meant, "
                "name it in a setting: TIDEMARK_SITES__<KEY>"
            )

    def _exchange(self, hop: _Hop, ask: _Ask, interval_s: float) -> _Answer:
        """Send one request, when it is its turn, and read the answer."""
        self._circuit.require_closed()
        url = hop.url
        host = self._shared_pace or host_of_url(url) or url
        with self._pace.turn(host, interval_s) as waited_s:
            self._count(requests=1, wait_ms=round(waited_s * 1000))
            with in_time(url), self._send(hop, ask) as response:
                self._count(**{f"{response.status_code // 100}xx": 1})
                self._circuit.note_status(response.status_code)
                answer = self._read(response, url, ask)
            pause_s = read_retry_after(answer.fetched.headers.get("retry-after"))
            rest_s = ask.rules.pause_s(answer.status, answer.fetched) if ask.rules else None
            pause_s = pause_s if rest_s is None else rest_s
            if answer.status in _WORTH_ANOTHER_TRY or (answer.status == 403 and rest_s is not None):
                reason = "http_5xx" if answer.status >= 500 else "http_429"
                raise TryAgain(f"{url} answered {answer.status}", pause_s, reason)
            if answer.status == 200 and ask.is_busy and ask.is_busy(answer.fetched):
                raise TryAgain(f"{url} answered that it is busy", pause_s, "http_5xx")
        if rest_s is not None:
            self._pace.rest(host, rest_s)
        return answer

    def _send(self, hop: _Hop, ask: _Ask) -> requests.Response:
        merged = CaseInsensitiveDict({"Accept": "*/*", **hop.headers})
        if ask.known and ask.known.url == hop.url:
            merged.update(ask.known.validators)
        merged.update({"User-Agent": self.user_agent, "Accept-Encoding": "gzip"})
        return self._sender.send(hop.sent_url, merged)

    def _read(self, response: requests.Response, url: str, ask: _Ask) -> _Answer:
        redirect = self._sender.redirect_of(response)
        try:
            headers = read_headers(response, url)
            is_wanted = response.status_code == 200 or (ask.rules and response.status_code >= 400)
            body = read_body(response, url, ask.max_bytes, ask.is_robots) if is_wanted else b""
        finally:
            self._count(bytes=response.raw.tell())
        headers = {name: self._tokens.hide(value) for name, value in headers.items()}
        fetched = Fetched(url, headers, self._tokens.hide_in(body), dt.datetime.now(dt.UTC))
        return _Answer(response.status_code, fetched, redirect)

    def _read_robots(self, url: str) -> Fetched:
        answer = self._persist(_Ask(url, max_bytes=robots.MAX_BYTES, is_robots=True))
        if not 400 <= answer.status < 500:  # else there is none: all is allowed, RFC 9309 2.3.1.3
            require_ok(answer.status, answer.fetched.url)
        return answer.fetched

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self.stats[name] = self.stats.get(name, 0) + number


def _version() -> str:
    try:
        return importlib.metadata.version(robots.AGENT)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "checkout"


def _require_sendable(headers: Mapping[str, str]) -> None:
    """Refuse what would break a header apart; the value may be a secret and is not shown."""
    for name, value in headers.items():
        if not is_sendable(value):
            raise UsageError(
                f"the header {name} holds a line break or another character that HTTP does not "
                "allow; see the setting it is made of"
            )


def _host_of_site(key: str, url: str) -> str:
    host = host_of_url(url)
    if host is None:
        raise UsageError(
            f"the address of site {key!r} is {url!r}; expected http://… or https://… "
            f"without a password (TIDEMARK_SITES__{key.upper()})"
        )
    return host
