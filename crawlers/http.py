"""The polite fetcher: the only way to the network (git aside).

It asks robots.txt first, keeps its distance between two requests to a host, waits when a site says
so, gives up rather than insist, and trusts nothing it is sent: hosts, sizes, times and redirects
are capped. What it fetched once it reads from disk the next time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import SecretStr
from requests.structures import CaseInsensitiveDict

from core.errors import TidemarkError, UnknownName
from core.settings import Settings
from crawlers.api_rules import ApiRules
from crawlers.connections import Cookies
from crawlers.exchange import DEFAULT_MAX_BYTES, Ask, Conduct, Exchange, require_sendable
from crawlers.pacing import Turnstile
from crawlers.raw_cache import Fetched, RawCache
from crawlers.tokens import Tokens
from crawlers.transfer import too_large
from crawlers.urls import follow, normalise

__all__ = ["DEFAULT_MAX_BYTES", "Fetched", "Fetcher"]

_ANY_ANSWER = ApiRules(pause_s=lambda _status, _answer: None)  # errors come with their bodies
_T = TypeVar("_T")


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
        self._cache = RawCache(settings.scratch / "http-cache") if use_cache else None
        self._revalidates = revalidates
        self._tokens = Tokens(settings.tokens)
        conduct = Conduct(
            request_interval_s, redirect_hosts, robots_exempt_paths, shares_pace, turnstile
        )
        self._exchange = Exchange(settings, self._sites, conduct, self._tokens, self._cache)
        self.user_agent, self.stats = self._exchange.user_agent, self._exchange.stats
        self._rules: dict[str, ApiRules] = {}
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
        not_before: dt.datetime | None = None,
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
            not_before: what the cache has from before this instant is asked for anew.

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
        require_sendable(headers)
        secrets = {
            name: self._tokens.learn(value, f"the parameter {name} of {key}")
            for name, value in (secret_params or {}).items()
        }

        def get() -> Fetched:
            url = normalise(self.base_url(key) + path, params)
            rules = self._rules.get(key)
            ask = Ask(url, headers, secrets, None, max_bytes, is_busy, rules, not_before)
            return self._get(ask)

        return self._without_tokens(get)

    def get_for_page(
        self,
        url: str,
        headers: Mapping[str, str],
        cookies: Cookies,
        *,
        is_fresh: bool = False,
        not_before: dt.datetime | None = None,
    ) -> Fetched:
        """Fetch what a page of a browser asks for, by the rules of ``get``.

        Args:
            url: whole.
            headers: as ``get`` has them.
            cookies: sent, and learnt.
            is_fresh: neither read it from the cache nor keep it there.
            not_before: as ``get`` has it.
        """

        def get() -> Fetched:
            given = CaseInsensitiveDict(headers)
            ask = Ask(normalise(url), given, not_before=not_before, cookies=cookies)
            return self._exchange.fetch(ask) if is_fresh else self._get(ask)

        return self._without_tokens(get)

    def post_for_page(
        self, url: str, headers: Mapping[str, str], form: bytes, cookies: Cookies
    ) -> tuple[int, Fetched, str | None]:
        """Send a form of a page, once; return status, answer and where it leads on to.

        Raises:
            ItemFailed: the transfer failed, or the site did (429, 5xx).
            SourceError: as ``get``.
        """

        def post() -> tuple[int, Fetched, str | None]:
            ask = Ask(url, headers, rules=_ANY_ANSWER, cookies=cookies, form=form)
            answer = self._exchange.send_once(ask)
            target = None if answer.redirect is None else follow(url, answer.redirect)
            return answer.status, answer.fetched, target

        return self._without_tokens(post)

    def knows(self, url: str) -> bool:
        """Whether a URL is on one of the source's hosts."""
        return self._exchange.knows(url)

    def learn_secret(self, value: SecretStr, what: str) -> str:
        """Hide a value from now on, as the tokens of the settings, and return it in the clear.

        Raises:
            UsageError: it is too short to be hidden, or has characters that HTTP does not allow.
        """
        return self._tokens.learn(value, what)

    def hide(self, text: str) -> str:
        """Return a text without tokens."""
        return self._tokens.hide(text)

    def count(self, **more: int) -> None:
        """Add to ``stats``."""
        self._exchange.count(**more)

    def _without_tokens(self, work: Callable[[], _T]) -> _T:
        """Do work; an error of ours shows no token."""
        try:
            return work()
        except TidemarkError as error:
            hidden = self._tokens.hidden(error)
            if hidden is None:
                raise
        raise hidden  # out here, so that the one with the token is not its context

    def _get(self, ask: Ask) -> Fetched:
        self._last = None
        request = f"GET {ask.url}\nAccept: {ask.headers.get('Accept', '')}"
        fetched = self._cache.load(request) if self._cache else None
        is_old = fetched and ask.not_before and fetched.retrieved_at < ask.not_before
        if fetched and not is_old and not self._revalidates:
            self._exchange.count(cached=1)
        else:
            fetched = self._exchange.fetch(replace(ask, known=fetched))
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
