"""Reading pages in a browser, as nobody or as somebody who is logged in.

A session is a context of the browser, and cookies of its own, of which nothing is ever written to
disk. It outlives a crash of the browser: the next page is read in a new one, still logged in.
Scripts do not see these cookies, nor are any sent that they make.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests
from playwright.sync_api import BrowserContext, Page
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from pydantic import SecretStr
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar, get_cookie_header

from core.errors import ItemFailed, ItemUnavailable, SourceError, TokenRefused
from crawlers.browser import Browser, Clock
from crawlers.http import DEFAULT_MAX_BYTES, Fetched
from crawlers.page_requests import PageRequests


@dataclass(frozen=True)
class LogIn:
    """How to log in at a site; ``…_field`` and the others are CSS selectors.

    Attributes:
        url: of the page with the form.
        user, password: sent to the site, and hidden everywhere else.
        submit: to click.
        done: is on the page that follows if it went well.
        refused: is there if it did not.
    """

    url: str
    user: str
    password: SecretStr
    user_field: str
    password_field: str
    submit: str
    done: str
    refused: str


class Session:
    """Pages of one source, read one after the other.

    Args:
        browser: to read them in; may have several sessions.
        login: who to be; None is nobody.
    """

    def __init__(self, browser: Browser, login: LogIn | None = None) -> None:
        self._browser, self._login = browser, login
        self._fetcher = browser.fetcher
        self._context: BrowserContext | None = None
        self._cookies = _Jar()
        self._state: Any = None  # what pages have stored, to begin a context with
        if login is not None:
            self._fetcher.learn_secret(login.password, "the password")

    def read(self, url: str, ready: str, not_before: dt.datetime | None = None) -> Fetched:
        """Return a page as it is once its JavaScript has filled it in.

        Args:
            url: whole, of one of the source's hosts.
            ready: CSS selector of what has to be there.
            not_before: what the cache has from before this instant is asked for anew.

        Returns:
            ``body`` is the HTML as it was then, UTF-8.

        Raises:
            ItemFailed: it was not ready in time, took too much memory, or its browser crashed every
                time.
            TokenRefused: the site does not accept the user name and password.
            SourceUnavailable: the browser has had its time; or as ``Fetcher.get``.
            SourceError: as ``Fetcher.get``.
        """
        self._browser.require_time()
        self._fetcher.count(pages=1)
        tries = self._browser.limits.tries
        for number in range(1, tries + 1):
            try:
                return self._read(url, ready, not_before)
            except PlaywrightError as error:
                why = self._browser.why_gone(url)
                self._fetcher.count(pages_crashed=1)
                self._drop()
                message = self._fetcher.hide(str(error)).partition("\n")[0]
            if why is not None:
                raise why
            if number == tries:
                break
        raise ItemFailed("browser", f"the browser crashed {tries} times at {url}: {message}")

    def close(self) -> None:
        """End the session."""
        with contextlib.suppress(PlaywrightError):
            if self._context is not None:
                self._context.close()
        self._context = None

    def _drop(self) -> None:
        """Give the browser up, with all of its contexts."""
        self._context = None
        self._browser.kill()

    def _read(self, url: str, ready: str, not_before: dt.datetime | None) -> Fetched:
        self._open_context()
        with self._browser.timing() as clock, self._page(clock) as (page, asked):
            document = asked.fetch(url, not_before)
            _require_page(document)
            asked.document = document
            try:
                page.goto(document.url, wait_until="commit", timeout=self._left_ms(clock))
                self._wait(page, ready, clock, asked)
                body = page.content().encode()
            except PlaywrightTimeout as error:
                self._drop()  # what hangs may hang for ever
                raise self._too_slow(url, ready, asked) from error
        if len(body) > DEFAULT_MAX_BYTES:
            raise ItemUnavailable("too_large", f"{url} is larger than {DEFAULT_MAX_BYTES} bytes")
        return Fetched(document.url, {}, body, asked.retrieved_at or document.retrieved_at)

    def _open_context(self) -> None:
        if self._context is not None and self._browser.is_alive:
            return
        self._context = self._browser.new_context(storage_state=self._state)
        if self._login is not None and self._state is None:
            self._log_in(self._login)

    @contextlib.contextmanager
    def _page(self, clock: Clock) -> Iterator[tuple[Page, PageRequests]]:
        context = self._context
        if context is None:
            raise RuntimeError("there is no context; open one first")
        asked = PageRequests(self._fetcher, self._cookies, clock)
        asked.num_left = self._browser.limits.page_requests
        context.route("**/*", asked.answer)
        page = context.new_page()
        asked.page = page
        page.on("popup", lambda popup: popup.close())
        page.on("crash", lambda _: asked.note_crash())
        try:
            yield page, asked
            asked.raise_interruption()
        finally:
            asked.page = None
            if self._context is context and self._browser.is_alive:
                with contextlib.suppress(PlaywrightError):
                    page.close()
                    context.unroute_all()

    def _wait(self, page: Page, selector: str, clock: Clock, asked: PageRequests) -> None:
        """Wait until something is on the page; the time that its requests wait does not count."""
        while True:
            try:
                page.wait_for_selector(
                    selector, state="attached", timeout=self._left_ms(clock, at_least=1.0)
                )
                return
            except PlaywrightTimeout:
                asked.raise_interruption()
                if self._left_ms(clock) <= 1.0:
                    raise

    def _left_ms(self, clock: Clock, at_least: float = 1.0) -> float:
        return max(at_least, 1000 * (self._browser.limits.page_s - clock.elapsed_s))

    def _too_slow(self, url: str, ready: str, asked: PageRequests) -> SourceError:
        """Say why a page did not become ready: what it asked for and did not get, if anything."""
        if asked.refusal is not None:
            return asked.refusal
        return ItemFailed(
            "timeout", f"{url} had no {ready} after {self._browser.limits.page_s:.0f} s"
        )

    def _log_in(self, login: LogIn) -> None:
        with self._browser.timing() as clock, self._page(clock) as (page, asked):
            asked.is_login = True
            asked.document = asked.fetch(login.url, None)
            try:
                page.goto(asked.document.url, wait_until="commit", timeout=self._left_ms(clock))
                self._wait(page, login.submit, clock, asked)
                page.fill(login.user_field, login.user, timeout=self._left_ms(clock))
                password = login.password.get_secret_value()
                page.fill(login.password_field, password, timeout=self._left_ms(clock))
                page.click(login.submit, timeout=self._left_ms(clock), no_wait_after=True)
                self._wait(page, f"{login.done}, {login.refused}", clock, asked)
                is_in = page.query_selector(login.done) is not None
                failure: SourceError | None = None if is_in else _refused(login)
            except PlaywrightTimeout:
                # Not chained: Playwright's message may show what was filled in.
                failure = self._too_slow(login.url, login.done, asked)
        if failure is not None:
            self._drop()
            raise failure
        self._state = self._context.storage_state() if self._context else None


def _refused(login: LogIn) -> TokenRefused:
    return TokenRefused(f"{login.url} does not accept the user name and password that were sent")


def _require_page(document: Fetched) -> None:
    kind = document.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    is_download = document.headers.get("content-disposition", "").lower().startswith("attachment")
    if is_download or kind not in ("text/html", "application/xhtml+xml"):
        raise ItemUnavailable(
            "unknown_format", f"{document.url} is no page but a download, or of type {kind!r}"
        )


class _Jar:
    """A session's cookies, for requests that the fetcher sends in the browser's place.

    Not in the browser: a call to it, while a request has its turn at the host, would let the next
    request begin, in this same thread, and wait for that turn for ever.
    """

    def __init__(self) -> None:
        self._jar = RequestsCookieJar()

    def header_for(self, url: str) -> str | None:
        request = requests.Request("GET", url).prepare()
        header: str | None = get_cookie_header(self._jar, request)  # type: ignore[no-untyped-call]
        return header

    def learn(self, response: requests.Response) -> None:
        request, answer = response.request, response.raw
        extract_cookies_to_jar(self._jar, request, answer)  # type: ignore[no-untyped-call]
