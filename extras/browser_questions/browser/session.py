"""Sessions that read pages in a browser, with or without a log-in.

A session is a Playwright browser context with its own cookies. It writes nothing to disk. If the
browser crashes, the session continues in a new browser and stays logged in. Scripts of a page
cannot read the cookies, and cookies that scripts set are not sent.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
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
from crawlers.web.connections import Cookies
from crawlers.web.fetcher import DEFAULT_MAX_BYTES, Fetched, Fetcher
from extras.browser_questions.browser.fetching import Browser, Clock
from extras.browser_questions.browser.obstacles import Scroll, Watch, scroll_list

_ANSWERED = {"script", "stylesheet", "xhr", "fetch"}  # other resource types (image, …) are refused
# The browser's values of these headers are not sent; the fetcher sets its own where needed.
_OWN_HEADERS = {
    "accept-encoding", "connection", "cookie", "host", "if-modified-since", "if-none-match",
    "range", "user-agent",
}  # fmt: skip
_DROPPED_HEADERS = {
    "connection", "content-encoding", "content-length", "keep-alive", "set-cookie",
    "strict-transport-security", "transfer-encoding",
}  # fmt: skip
_LOOK_MS = 500.0  # ms between two looks at a page that is not ready
_ON = '<!doctype html><meta http-equiv="refresh" content="0;url={}"><title>-</title>'


class PageRequests:
    """Handler of one page's requests. Waits of the fetcher do not count as loading time."""

    def __init__(self, fetcher: Fetcher, cookies: Cookies, clock: Clock) -> None:
        self._fetcher = fetcher
        self._cookies = cookies
        self._clock = clock
        self._not_before: dt.datetime | None = None
        self._interruption: BaseException | None = None
        self.page: Page | None = None  # only requests of this page are answered
        self.document: Fetched | None = None  # the page's HTML; no other HTML is loaded
        self.is_login = False  # True during log-in: forms and other HTML allowed, no caching
        self.num_left = 0  # number of requests that may still be answered
        self.refusal: SourceError | None = None  # error of the first failed request
        self.retrieved_at: dt.datetime | None = None  # time of the page's oldest response

    def fetch(self, url: str, not_before: dt.datetime | None) -> Fetched:
        """Fetch the page's HTML; ``not_before`` also applies to its scripts, styles and data."""
        self._not_before = not_before
        return self._get(url, {"accept": "text/html"})

    def answer(self, route: Route) -> None:
        """Answer or refuse one request; Playwright calls this method for every request."""
        page: _Fulfilled | None = None
        try:
            page = self._answer(route.request)
        except SourceError as error:
            if isinstance(error, TokenRefused) or not isinstance(error, AccessRefused):
                self.refusal = self.refusal or error  # ignore other AccessRefused errors
        except PlaywrightError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again by waiting code
            self._interruption = error
        if page is None:
            self._fetcher.count(not_asked=1)
            self._refuse(route)
        else:
            route.fulfill(status=page.status, headers=page.headers, body=page.body)

    def _refuse(self, route: Route) -> None:
        """Refuse a request; a refused document gets status 204, so the browser keeps the page."""
        if route.request.resource_type == "document":
            route.fulfill(status=204)
        else:
            route.abort()

    def raise_interruption(self) -> None:
        """Raise the error of an earlier request, unless it concerns only this page."""
        if self._interruption is not None:
            raise self._interruption
        is_general = not isinstance(self.refusal, ItemFailed)  # ItemFailed concerns this page only
        if isinstance(self.refusal, SourceUnavailable) and is_general:
            raise self.refusal

    def forget_page(self) -> None:
        """Refuse all further requests, because the page's process has ended."""
        self.page = None

    def _answer(self, request: Request) -> _Fulfilled | None:
        """Return the response to a request of the page; None refuses the request."""
        if self.page is None or not self._is_of_page(request):
            return None
        kind = request.resource_type
        url = urldefrag(request.url).url
        if kind == "document":
            return self._answer_document(request, url)
        if kind not in _ANSWERED or not self._may_ask(url) or request.method != "GET":
            return None
        return _fulfilled(self._get(url, _headers_of(request)))

    def _is_of_page(self, request: Request) -> bool:
        """Return True if the page itself sent a request, and no frame or other window."""
        try:
            frame = request.frame
        except PlaywrightError:  # the window of the request is still opening
            return False
        return self.page is not None and frame == self.page.main_frame

    def _answer_document(self, request: Request, url: str) -> _Fulfilled | None:
        """Return the HTML of the page or of the log-in; None refuses any other HTML."""
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
            return _fulfilled(fetched, status)
        # An HTML refresh replaces the status 3xx, which Chromium would follow over the network.
        body = _ON.format(html.escape(target)).encode()
        return _Fulfilled(200, {"content-type": "text/html"}, body)

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


class _Fulfilled(NamedTuple):
    """A response that the page gets from us."""

    status: int
    headers: dict[str, str]
    body: bytes


def _headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request, without those that the fetcher sets itself."""
    return {
        name: value
        for name, value in request.headers.items()
        if name not in _OWN_HEADERS and not name.startswith(("sec-", ":"))
    }


def _fulfilled(fetched: Fetched, status: int = 200) -> _Fulfilled:
    headers = {
        name: value for name, value in fetched.headers.items() if name not in _DROPPED_HEADERS
    }
    return _Fulfilled(status, headers, fetched.body)


@dataclass(frozen=True)
class LogIn:
    """The log-in form of a site. The password is sent to this form only, and hidden in messages."""

    url: str  # URL of the page with the form
    user: str
    password: SecretStr
    user_field: str  # CSS selectors: this field and all following fields
    password_field: str
    submit: str  # element to click to send the form
    done: str  # element that is present after a successful log-in
    refused: str  # element that is present after a failed log-in


class Session:
    """Reader of a source's pages, one page at a time. Several sessions may share a browser."""

    def __init__(self, browser: Browser, login: LogIn | None = None) -> None:
        self._browser = browser
        self._login = login
        self._fetcher = browser.fetcher
        self._context: BrowserContext | None = None
        self._cookies = _Jar()
        self._state: Any = None  # browser storage after the log-in, copied into new contexts
        if login is not None:
            self._fetcher.learn_secret(login.password, "the password")

    def read(
        self,
        url: str,
        ready: str,
        not_before: dt.datetime | None = None,
        scroll: Scroll | None = None,
    ) -> Fetched:
        """Return the HTML (UTF-8) of a page as soon as the CSS selector ``ready`` matches.

        Cached responses older than ``not_before`` are requested again. A list is first scrolled
        within the bounds of ``scroll``. The fetcher's ``stats`` count closed consent walls
        (``walls_closed``).

        Raises:
            ItemUnavailable: ``permission``, if a consent wall cannot be refused, or if the page
                asks for a log-in.
            ItemFailed: the page was not ready in time, used too much memory, or crashed in every
                try.
            TokenRefused: the site rejects the user name and password.
            SourceUnavailable: the session's time limit has passed, or ``Fetcher.get`` raised it.
            SourceError: ``Fetcher.get`` raised another error.
        """
        self._browser.require_time()
        self._fetcher.count(pages=1)
        tries = self._browser.limits.tries
        for number in range(1, tries + 1):
            try:
                return self._read(url, ready, not_before, scroll)
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
        self._context = None
        self._browser.kill()

    def _read(
        self, url: str, ready: str, not_before: dt.datetime | None, scroll: Scroll | None
    ) -> Fetched:
        """Load a page, wait for the element ``ready``, and return the HTML that scripts made."""
        self._open_context()
        with self._browser.timing() as clock, self._page(clock) as (page, asked):
            document = asked.fetch(url, not_before)
            _require_page(document)
            asked.document = document
            watch = Watch(page, url, ready, lambda: self._left_ms(clock))
            limit = asked.num_left
            try:
                page.goto(document.url, wait_until="commit", timeout=self._left_ms(clock))
                self._wait(page, ready, clock, asked, watch)
                watch.require_clear()
                if scroll is not None:
                    scroll_list(page, scroll, clock, lambda: limit - asked.num_left)
                body = page.content().encode()
            except PlaywrightTimeout as error:
                self._drop()  # a browser that hangs may never recover
                raise self._too_slow(url, ready, asked) from error
            finally:
                self._fetcher.count(walls_closed=watch.num_closed)
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
        """Open a page whose requests all go through the fetcher; close it at the end."""
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

    def _wait(
        self,
        page: Page,
        selector: str,
        clock: Clock,
        asked: PageRequests,
        watch: Watch | None = None,
    ) -> None:
        """Wait for a selector; meanwhile ``watch`` looks for walls and log-ins."""
        while True:
            left_ms = self._left_ms(clock)
            try:
                timeout = min(left_ms, _LOOK_MS) if watch else left_ms
                page.wait_for_selector(selector, state="attached", timeout=timeout)
                return
            except PlaywrightTimeout:
                asked.raise_interruption()
                if left_ms <= 1.0:
                    raise
                if watch and watch.look() and self._left_ms(clock) <= 2 * _LOOK_MS:
                    raise watch.covered() from None

    def _left_ms(self, clock: Clock) -> float:
        return max(1.0, 1000 * (self._browser.limits.page_s - clock.elapsed_s))

    def _too_slow(self, url: str, ready: str, asked: PageRequests) -> SourceError:
        if asked.refusal is not None:
            return asked.refusal
        return ItemFailed(
            "timeout", f"{url} had no {ready} after {self._browser.limits.page_s:.0f} s"
        )

    def _log_in(self, login: LogIn) -> None:
        """Fill in the log-in form, and keep the cookies; raise an error if it is refused."""
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
                # Raise the error below, without a cause: Playwright's error may show the password.
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
            "unknown_format", f"{document.url} is a download, or of type {kind!r}, not HTML"
        )


class _Jar:
    """The cookies of a session, for requests that the fetcher sends for the browser.

    The browser stores no cookies. Reading cookies from it during a request may start a second
    request in the thread, which would wait for ever for the first.
    """

    def __init__(self) -> None:
        self._jar = RequestsCookieJar()

    def header_for(self, url: str) -> str | None:
        request = requests.Request("GET", url).prepare()
        header: str | None = get_cookie_header(self._jar, request)  # type: ignore[no-untyped-call]
        return header

    def learn(self, response: requests.Response) -> None:
        request = response.request
        answer = response.raw
        extract_cookies_to_jar(self._jar, request, answer)  # type: ignore[no-untyped-call]
