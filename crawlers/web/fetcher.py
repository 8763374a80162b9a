"""The polite fetcher, which all network access uses, apart from git.

The fetcher obeys robots.txt, keeps a minimum interval between requests to a host, honours
Retry-After, and stops after repeated failures. Hosts, response sizes, times and redirects are
limited. A repeated request is answered from the cache.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import SecretStr
from requests.structures import CaseInsensitiveDict

from core.errors import AccessRefused, ItemUnavailable, SourceChanged, TidemarkError, UnknownName
from core.settings import Settings
from crawlers.web.connections import Cookies, too_large
from crawlers.web.credentials import Tokens
from crawlers.web.download import Download
from crawlers.web.exchange import (
    DEFAULT_MAX_BYTES,
    Ask,
    Conduct,
    Exchange,
    HttpResponse,
    require_sendable,
)
from crawlers.web.pacing import ApiRules, Turnstile
from crawlers.web.ranges import ByteRange
from crawlers.web.raw_cache import Fetched, RawCache
from crawlers.web.times import read_time
from crawlers.web.urls import follow, normalise
from crawlers.web.values import load_json

__all__ = ["DEFAULT_MAX_BYTES", "Fetched", "Fetcher", "read_time"]

_ANY_STATUS = ApiRules(pause_s=lambda _status, _response: None)  # keeps the body of error responses
_T = TypeVar("_T")


class Fetcher:
    """HTTP client for a source's sites, with robots.txt and rate limits; it is thread-safe.

    All fetchers with the same scratch folder share the request interval of a host. ``stats`` has
    counts for the manifest: requests, cached, retries, 2xx … 5xx, 304, bytes (transferred), wait_ms
    (waiting before requests, pauses included). ``user_agent`` is the User-Agent header.

    Args:
        settings: provide ``sites``, ``tokens``, ``request_interval_s``, ``contact`` and the scratch
            folder for cache and pacing.
        sites: default base URL by site key; the settings may override it.
        request_interval_s: minimum seconds between requests to one host; robots.txt may raise it.
            The settings may raise it, and reduce it for sites that they name.
        redirect_hosts: further hosts that redirects may lead to, as ``name`` or ``name:port``.
        use_cache: True to read and write responses in the cache on disk.
        robots_exempt_paths: paths of the sites exempt from robots.txt (see ``SourceInfo``).
        revalidates: True to revalidate cached responses (ETag, Last-Modified) before use.
        shares_pace: True if all sites share one request interval and one connection; a name: also
            with other fetchers of this name. Downloads do not share it.
        turnstile: lock that shares the request interval with other machines (see ``Pace``).

    Raises:
        UsageError: a base URL, a token or the contact cannot be used.
    """

    def __init__(  # noqa: PLR0913 - options of a source and of a run
        self,
        settings: Settings,
        sites: Mapping[str, str],
        request_interval_s: float,
        redirect_hosts: Sequence[str] = (),
        use_cache: bool = True,
        robots_exempt_paths: Sequence[str] = (),
        *,
        revalidates: bool = False,
        shares_pace: bool | str = False,
        turnstile: Turnstile | None = None,
    ) -> None:
        self._sites = {key: settings.sites.get(key, url).rstrip("/") for key, url in sites.items()}
        self._cache = RawCache(settings.scratch / "http-cache") if use_cache else None
        self.revalidates = revalidates
        self._tokens = Tokens(settings.tokens)
        conduct = Conduct(
            request_interval_s, redirect_hosts, robots_exempt_paths, shares_pace, turnstile
        )
        self._exchange = Exchange(settings, self._sites, conduct, self._tokens, self._cache)
        self.user_agent = self._exchange.user_agent
        self.stats = self._exchange.stats
        self._rules: dict[str, ApiRules] = {}
        self._received: list[str] = []  # requests of this run whose responses are cached
        self._has_asked = False  # see ``is_simulated``
        self._last: str | None = None  # the latest request, or None if it failed

    def base_url(self, key: str) -> str:
        """Return a site's base URL without a slash at the end; UnknownName if there is none."""
        if key not in self._sites:
            raise UnknownName("site", key, sorted(self._sites))
        return self._sites[key]

    def is_simulated(self) -> bool:
        """Return True if a response was of a simulated site."""
        # Sources that read their site by git alone have no response. Then their site is asked.
        if not self._has_asked and not self.stats["requests"] and not self.stats["cached"]:
            self._has_asked = True
            for site in self._sites.values():
                self._exchange.ask_whether_simulated(site)
        return self._exchange.is_simulated

    def token(self, key: str) -> SecretStr | None:
        """Return a site's token from the settings, or None."""
        return self._tokens.of(key)

    def record(self, note: Callable[[HttpResponse, bool], None]) -> None:
        """Pass each response from now on to ``note``, of any status, without tokens.

        The second argument is true for a part of a download, whose body is not in the response.
        """
        self._exchange.record = note

    def heed(self, key: str, rules: ApiRules) -> None:
        """Apply the rules of a site's API to its responses from now on."""
        self._rules[key] = rules

    def get(  # noqa: PLR0913 - parts of a request
        self,
        key: str,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        secret_params: Mapping[str, SecretStr] | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        is_busy: Callable[[Fetched], bool] | None = None,
        not_before: dt.datetime | None = None,
        span: tuple[int, int] | None = None,
    ) -> Fetched:
        """Fetch one page, from the cache if possible; return a response of status 200.

        Our tokens are removed from the response.

        Args:
            key: key of the site in ``sites``.
            path: path that is appended to the base URL; it may include a query.
            params: query parameters, sent in sorted order.
            headers: request headers, never stored, and not sent to redirect targets on other hosts.
            secret_params: further query parameters, which appear in no file, message, log, result
                or cache key.
            max_bytes: limit of the body's size, both compressed and decompressed.
            is_busy: returns True for a response 200 that means "try later" (an overloaded
                MediaWiki). The response is then handled like a 503.
            not_before: a cached response older than this time is requested again.
            span: first and last byte of the part of a file to fetch. The body is this part, or less
                if the file ends before. Any other response is tried again, as a damaged one is.

        Raises:
            ItemUnavailable: status 403, 404, 410 or 451, disallowed by robots.txt, large body.
            ItemFailed: all tries of this URL failed or were too slow.
            SourceUnavailable: the site refuses us, fails repeatedly, or asks for a long pause.
            SourceChanged: the response has an unexpected status, content coding or redirect target.
            AccessRefused: status 401, a redirect to an unlisted host, a private address, or an
                unreadable robots.txt.
        """
        headers = CaseInsensitiveDict(headers or {})
        require_sendable(headers)
        secrets = {
            name: self._tokens.learn(value, f"the parameter {name} of {key}")
            for name, value in (secret_params or {}).items()
        }

        def get() -> Fetched:
            url = normalise(self.base_url(key) + path, params)
            rules = self._rules.get(key)
            ask = Ask(url, headers, secrets, None, max_bytes, is_busy, rules, not_before)
            return self._get(replace(ask, span=ByteRange(*span)) if span else ask)

        return self._without_tokens(get)

    def download(self, key: str, path: str, sink: Callable[[bytes], None], max_bytes: int) -> None:
        """Fetch a large file, and pass its bytes to ``sink`` as they come; nothing is cached.

        The time is limited by progress, not in total. A cut transfer is resumed. Raise the errors
        of ``get``; ``sink`` has then received a part of the file. ``sink`` raises no errors of
        transfers.
        """

        def get() -> None:
            url = normalise(self.base_url(key) + path)
            self._last = None
            self._exchange.fetch(Ask(url, download=Download(sink, max_bytes)))

        self._without_tokens(get)

    def get_for_page(
        self,
        url: str,
        headers: Mapping[str, str],
        cookies: Cookies,
        *,
        is_fresh: bool = False,
        not_before: dt.datetime | None = None,
    ) -> Fetched:
        """Fetch a URL with cookies for a browser page; ``is_fresh`` skips the cache."""

        def get() -> Fetched:
            given = CaseInsensitiveDict(headers)
            ask = Ask(normalise(url), given, not_before=not_before, cookies=cookies)
            return self._exchange.fetch(ask) if is_fresh else self._get(ask)

        return self._without_tokens(get)

    def post_for_page(
        self, url: str, headers: Mapping[str, str], form: bytes, cookies: Cookies
    ) -> tuple[int, Fetched, str | None]:
        """Send a page's form without retries; return status, response and redirect target.

        Raise ItemFailed if the transfer failed, or the site returned 429 or 5xx.
        """

        def post() -> tuple[int, Fetched, str | None]:
            ask = Ask(url, headers, rules=_ANY_STATUS, cookies=cookies, form=form)
            response = self._exchange.send_once(ask)
            target = None if response.redirect is None else follow(url, response.redirect)
            return response.status, response.fetched, target

        return self._without_tokens(post)

    def knows(self, url: str) -> bool:
        """Return True if a URL is on one of the source's hosts."""
        return self._exchange.knows(url)

    def learn_secret(self, value: SecretStr, what: str) -> str:
        """Hide a secret value from now on, like the settings' tokens; see ``Tokens.learn``."""
        return self._tokens.learn(value, what)

    def hide(self, text: str) -> str:
        """Return a text with all tokens removed."""
        return self._tokens.hide(text)

    def count(self, **more: int) -> None:
        """Add numbers to the counts in ``stats``."""
        self._exchange.count(**more)

    def _without_tokens(self, work: Callable[[], _T]) -> _T:
        """Do some work; if it fails, raise the same error without tokens in its text."""
        try:
            return work()
        except TidemarkError as error:
            hidden = self._tokens.hidden(error)
            if hidden is None:
                raise
        raise hidden  # raised outside the handler, so that the error has no ``__context__``

    def _get(self, ask: Ask) -> Fetched:
        """Return a response from the cache, or request and store it."""
        self._last = None
        request = f"GET {ask.url}\nAccept: {ask.headers.get('Accept', '')}"
        request += f"\nRange: {ask.span.headers['Range']}" if ask.span else ""
        fetched = self._cache.load(request) if self._cache else None
        is_old = fetched and ask.not_before and fetched.retrieved_at < ask.not_before
        if fetched and not is_old and not self.revalidates:
            self._exchange.count(cached=1)
            self._exchange.note_headers(fetched.headers)
        else:
            fetched = self._exchange.fetch(replace(ask, known=fetched))
            if self._cache:
                self._cache.save(request, fetched)
        self._last = request
        self._received.append(request)
        if len(fetched.body) > ask.max_bytes:
            raise too_large(ask.url, ask.max_bytes)
        return fetched

    def forget(self, last_only: bool) -> None:
        """Delete the responses of this run, or of the last request, from the cache."""
        last = [self._last] if self._last else []
        for request in last if last_only else self._received:
            if self._cache:
                self._cache.remove(request)


def decode(fetched: Fetched) -> Any:
    """Return the body parsed as UTF-8 JSON (RFC 8259, 8.1); None if invalid or ``null``."""
    try:
        return load_json(fetched.body)
    except ValueError:
        return None


def get_list(
    fetcher: Fetcher,
    key: str,
    path: str,
    params: Mapping[str, str | int],
    is_busy: Callable[[Fetched], bool],
    **options: Any,
) -> Fetched:
    """Fetch a page of a list that the crawl requires; ``options`` are those of ``Fetcher.get``.

    Raise AccessRefused if robots.txt or the site forbids the list. Raise SourceChanged if the list
    does not exist. Raise ItemFailed if the list is temporarily unavailable.
    """
    try:
        return fetcher.get(key, path, params, is_busy=is_busy, **options)
    except ItemUnavailable as error:
        if error.reason in {"robots", "http_403", "permission"}:
            raise AccessRefused(f"{key}: the list is closed to us: {error}") from error
        raise SourceChanged(f"{key}: the list is unavailable: {error}") from error
