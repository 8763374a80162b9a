"""Reading pages in a browser, with or without a log-in.

A session is a context of the browser with its own cookies. It writes nothing to disk. It survives a
crash of the browser: the next page is read in a new browser, still logged in. Scripts cannot read
the cookies, and cookies set by scripts are not sent. The polite fetcher answers or refuses the
requests of a page.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag

import requests
from playwright.sync_api import BrowserContext, Page, Request, Route
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from pydantic import SecretStr
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar, get_cookie_header

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceError,
    SourceUnavailable,
    TokenRefused,
)
from crawlers.browser.fetching import Browser, Clock
from crawlers.web.connections import Cookies
from crawlers.web.fetcher import DEFAULT_MAX_BYTES, Fetched, Fetcher

_ANSWERED = {"script", "stylesheet", "xhr", "fetch"}  # no image, media, font, ping, …
# Headers that the fetcher sets itself, or that describe the browser.
_OWN_HEADERS = {
    "accept-encoding", "connection", "cookie", "host", "if-modified-since", "if-none-match",
    "range", "user-agent",
}  # fmt: skip
_DROPPED_HEADERS = {
    "connection", "content-encoding", "content-length", "keep-alive", "set-cookie",
    "strict-transport-security", "transfer-encoding",
}  # fmt: skip
_ON = '<!doctype html><meta http-equiv="refresh" content="0;url={}"><title>-</title>'


class PageRequests:
    """The requests of one page; the clock of the page excludes their waits."""

    def __init__(self, fetcher: Fetcher, cookies: Cookies, clock: Clock) -> None:
        self._fetcher, self._cookies, self._clock = fetcher, cookies, clock
        self._not_before: dt.datetime | None = None
        self._interruption: BaseException | None = None
        self.page: Page | None = None  # requests of other pages (pop-ups) are refused
        self.document: Fetched | None = None  # the page's document; no other one is loaded
        self.is_login = False  # may send forms and load other documents; nothing is cached
        self.num_left = 0  # requests that may still be answered
        self.refusal: SourceError | None = None  # the first refusal
        self.retrieved_at: dt.datetime | None = None  # time of the page's oldest part

    def fetch(self, url: str, not_before: dt.datetime | None) -> Fetched:
        """Fetch the page's document; ``not_before`` holds for its parts, too."""
        self._not_before = not_before
        return self._get(url, {"accept": "text/html"})

    def answer(self, route: Route) -> None:
        """Answer or refuse a request; Playwright calls this for each request."""
        given: dict[str, Any] | None = None
        try:
            given = self._answer(route.request)
        except SourceError as error:
            if isinstance(error, TokenRefused) or not isinstance(error, AccessRefused):
                self.refusal = self.refusal or error  # else an outside link: ignored
        except PlaywrightError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again by waiting code
            self._interruption = error
        if given is None:
            self._fetcher.count(not_asked=1)
            self._refuse(route)
        else:
            route.fulfill(**given)

    def _refuse(self, route: Route) -> None:
        """Refuse a request; a page that tries to load another document stays unchanged."""
        if route.request.resource_type == "document":
            route.fulfill(status=204)
        else:
            route.abort()

    def raise_interruption(self) -> None:
        """Raise the error that ended a request, unless it concerns this page alone."""
        if self._interruption is not None:
            raise self._interruption
        is_general = not isinstance(self.refusal, ItemFailed)  # the whole site is unavailable
        if isinstance(self.refusal, SourceUnavailable) and is_general:
            raise self.refusal

    def forget_page(self) -> None:
        """Answer no more requests: the page's process has ended."""
        self.page = None

    def _answer(self, request: Request) -> dict[str, Any] | None:
        if self.page is None or not self._is_of_page(request):
            return None
        kind, url = request.resource_type, urldefrag(request.url).url
        if kind == "document":
            return self._answer_document(request, url)
        if kind not in _ANSWERED or not self._may_ask(url) or request.method != "GET":
            return None
        return _fulfilled(self._get(url, _headers_of(request)))

    def _is_of_page(self, request: Request) -> bool:
        try:
            frame = request.frame
        except PlaywrightError:  # a window that still opens
            return False
        return self.page is not None and frame == self.page.main_frame

    def _answer_document(self, request: Request, url: str) -> dict[str, Any] | None:
        document = self.document
        if document is not None and url == urldefrag(document.url).url and request.method == "GET":
            self.document = None if self.is_login else document
            return _fulfilled(document)
        if not self.is_login or not self._may_ask(url):
            return None
        if request.method == "GET":
            return _fulfilled(self._get(url, _headers_of(request)))
        with self._clock.fetching():
            form = request.post_data_buffer or b""
            status, fetched, target = self._fetcher.post_for_page(
                url, _headers_of(request), form, self._cookies
            )
        if target is None:
            return {**_fulfilled(fetched), "status": status}
        # Chromium would follow a redirect over the network, which is blocked.
        return {"status": 200, "content_type": "text/html", "body": _ON.format(html.escape(target))}

    def _may_ask(self, url: str) -> bool:
        self.num_left -= 1
        return self.num_left >= 0 and self._fetcher.knows(url)

    def _get(self, url: str, headers: dict[str, str]) -> Fetched:
        with self._clock.fetching():
            fetched = self._fetcher.get_for_page(
                url, headers, self._cookies, is_fresh=self.is_login, not_before=self._not_before
            )
        if self.retrieved_at is None or fetched.retrieved_at < self.retrieved_at:
            self.retrieved_at = fetched.retrieved_at
        return fetched


def _headers_of(request: Request) -> dict[str, str]:
    return {
        name: value
        for name, value in request.headers.items()
        if name not in _OWN_HEADERS and not name.startswith(("sec-", ":"))
    }


def _fulfilled(fetched: Fetched) -> dict[str, Any]:
    headers = {
        name: value for name, value in fetched.headers.items() if name not in _DROPPED_HEADERS
    }
    return {"status": 200, "headers": headers, "body": fetched.body}


@dataclass(frozen=True)
class LogIn:
    """The log-in form of a site; the password is sent only there, and hidden elsewhere."""

    url: str  # of the page with the form
    user: str
    password: SecretStr
    user_field: str  # CSS selector, as are the following fields
    password_field: str
    submit: str  # element to click
    done: str  # present after a successful log-in
    refused: str  # present after a failed log-in


class Session:
    """Pages of one source, read one after the other. A browser may have several sessions."""

    def __init__(self, browser: Browser, login: LogIn | None = None) -> None:
        self._browser, self._login = browser, login
        self._fetcher = browser.fetcher
        self._context: BrowserContext | None = None
        self._cookies = _Jar()
        self._state: Any = None  # stored by pages; the next context starts with it
        if login is not None:
            self._fetcher.learn_secret(login.password, "the password")

    def read(self, url: str, ready: str, not_before: dt.datetime | None = None) -> Fetched:
        """Return the HTML of a page (UTF-8) once the CSS selector ``ready`` matches.

        A cached response from before ``not_before`` is requested again.

        Raises:
            ItemFailed: the page was not ready in time, used too much memory, or crashed in every
                try.
            TokenRefused: the site rejects the user name and password.
            SourceUnavailable: the session time is over; or as ``Fetcher.get``.
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

    def _drop(self) -> None:
        """Kill the browser, with all of its contexts."""
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
                self._drop()  # a hanging browser may never recover
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
        page.on("crash", lambda _: asked.forget_page())
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
        """Wait until an element matches; the waits of the page's requests do not count."""
        while True:
            try:
                page.wait_for_selector(selector, state="attached", timeout=self._left_ms(clock))
                return
            except PlaywrightTimeout:
                asked.raise_interruption()
                if self._left_ms(clock) <= 1.0:
                    raise

    def _left_ms(self, clock: Clock) -> float:
        return max(1.0, 1000 * (self._browser.limits.page_s - clock.elapsed_s))

    def _too_slow(self, url: str, ready: str, asked: PageRequests) -> SourceError:
        """Return the error of a page that is not ready; it names refused requests, if any."""
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
                said = f"{login.url} does not accept the user name and password that were sent"
                failure: SourceError | None = None if is_in else TokenRefused(said)
            except PlaywrightTimeout:
                # Not chained: Playwright's message may show the password.
                failure = self._too_slow(login.url, login.done, asked)
        if failure is not None:
            self._drop()
            raise failure
        self._state = self._context.storage_state() if self._context else None


def _require_page(document: Fetched) -> None:
    kind = document.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    is_download = document.headers.get("content-disposition", "").lower().startswith("attachment")
    if is_download or kind not in ("text/html", "application/xhtml+xml"):
        raise ItemUnavailable(
            "unknown_format", f"{document.url} is no page but a download, or of type {kind!r}"
        )


class _Jar:
    """A session's cookies, for requests that the fetcher sends for the browser.

    The browser itself stores no cookies. Reading cookies from it during a request would start
    another request in the same thread. That request would wait for the host's lock for ever.
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
