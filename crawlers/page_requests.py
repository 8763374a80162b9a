"""What a page of a browser asks for, answered by the polite fetcher, or refused."""

from __future__ import annotations

import datetime as dt
import html
from typing import Any
from urllib.parse import urldefrag

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Request, Route

from core.errors import (
    AccessRefused,
    ItemFailed,
    SourceError,
    SourceUnavailable,
    TokenRefused,
)
from crawlers.browser import Clock
from crawlers.connections import Cookies
from crawlers.http import Fetched, Fetcher

_ANSWERED = {"script", "stylesheet", "xhr", "fetch"}  # not: image, media, font, ping, …
# Said by the fetcher itself, or about the browser and no business of the site's.
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
    """The requests of one page.

    Args:
        fetcher: answers them.
        cookies: of the page's context.
        clock: stands still while they wait.

    Attributes:
        page: whose requests are answered; others (pop-ups) get nothing.
        document: what the page is; it goes nowhere else.
        is_login: it may send forms, go on to other documents, and nothing is cached.
        num_left: how many more may be answered.
        refusal: the first error among the answers, for a page that is not ready in the end.
        retrieved_at: when the oldest part of the page was had.
    """

    def __init__(self, fetcher: Fetcher, cookies: Cookies, clock: Clock) -> None:
        self._fetcher, self._cookies, self._clock = fetcher, cookies, clock
        self._not_before: dt.datetime | None = None
        self._interruption: BaseException | None = None
        self.page: Page | None = None
        self.document: Fetched | None = None
        self.is_login = False
        self.num_left = 0
        self.refusal: SourceError | None = None
        self.retrieved_at: dt.datetime | None = None

    def fetch(self, url: str, not_before: dt.datetime | None) -> Fetched:
        """Fetch the page's document; its parts will be no older than it has to be."""
        self._not_before = not_before
        return self._get(url, {"accept": "text/html"})

    def answer(self, route: Route) -> None:
        """Answer or refuse a request; called by Playwright for each of them."""
        given: dict[str, Any] | None = None
        try:
            given = self._answer(route.request)
        except SourceError as error:
            if isinstance(error, TokenRefused) or not isinstance(error, AccessRefused):
                self.refusal = self.refusal or error  # what leads elsewhere is merely not followed
        except PlaywrightError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again where the page is waited for
            self._interruption = error
        if given is None:
            self._fetcher.count(not_asked=1)
            self._refuse(route)
        else:
            route.fulfill(**given)

    def _refuse(self, route: Route) -> None:
        """Answer nothing; a page that wants to go elsewhere stays what it is."""
        if route.request.resource_type == "document":
            route.fulfill(status=204)
        else:
            route.abort()

    def raise_interruption(self) -> None:
        """Raise what ended a request and is no matter of this page: a full disk, an end of the run.

        Raises:
            BaseException: whatever it was.
        """
        if self._interruption is not None:
            raise self._interruption
        is_general = not isinstance(self.refusal, ItemFailed)  # the site is left alone, say
        if isinstance(self.refusal, SourceUnavailable) and is_general:
            raise self.refusal

    def note_crash(self) -> None:
        """Note that the page's process is gone; nothing more is answered."""
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
        except PlaywrightError:  # a window that is only just opening
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
        # Chromium would go on by itself, over the network that it does not have.
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
