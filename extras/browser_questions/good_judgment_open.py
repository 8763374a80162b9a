"""Good Judgment Open: questions of tournaments, answered by their organisers.

The site has no API. A recorded permission is required. Its list ``/questions?status=resolved`` is
public, and is read without a browser. It may end at a page that asks for a login; then the months
are partial. With a token (``TIDEMARK_TOKENS__GOOD_JUDGMENT_OPEN=USER:PASSWORD``), the members' list
is read in place of it, with a browser. Pages of single questions are public. No date of resolution
is stated, so a question belongs to the month in which it closed. A question decided early closes on
the day of the decision (as in FreshBench). The members' list has no closing dates, so every
question's page is read; pages with an answer come from the cache. No licence is stated, so texts
are for local use only.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from lxml import etree, html
from pydantic import SecretStr

from core.corpus.questions import CrowdForecast, Question
from core.errors import (
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    SourceUnavailable,
    TokenRefused,
)
from core.month import Month
from crawlers.contract import Drop, Failure, Repeat, missing_item
from crawlers.questions.contract import (
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    know_all_from,
)
from crawlers.web.fetcher import Fetched, read_time
from crawlers.web.urls import follow

if TYPE_CHECKING:
    from extras.browser_questions.browser.session import LogIn

SITE = "good_judgment_open"
INFO = QuestionSourceInfo(
    name=SITE,
    title="Good Judgment Open: resolved questions",
    licence="LicenseRef-unknown",
    language="en",
    category="forecasting",
    sites={SITE: "https://www.gjopen.com"},
    request_interval_s=2.0,
    first_month=Month("2015-09"),
    permission=(
        "it offers no API, and the rest of its list of resolved questions is for members who are "
        "logged in; ask Good Judgment (https://www.gjopen.com/contact) whether you may read it by "
        "a program"
    ),
    in_browser=True,
)
MAX_PAGES = 1_000
PAGE_S = 60.0  # maximum loading time of a page (s)
_PUBLIC_LIST = "/questions"
_PUBLIC_ROWS = "//div[contains(concat(' ', @class, ' '), ' question-row-component ')]"
_CLOSED = (  # a time whose nearest heading before it is "Closed"
    ".//span[@data-localizable-timestamp][preceding::span[contains(@class, 'info-heading')][1]"
    "[normalize-space(translate(., ':', ' ')) = 'Closed']]/@data-localizable-timestamp"
)
_LIST = "/leaderboards/questions"
_ROWS = "//div[contains(@class, 'row-table-row')]/div/a/@href"
_LOGIN = "//*[@id='new_user']"
_READY = "div.row.row-table-row > div > a, #new_user"
_QUESTION = re.compile(r"/(?:leaderboards/)?questions/(\d+)(?:-[^/]*)?")
_VOID = re.compile(r"\bvoid(?:ed)?\b", re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the months' questions, in the order of the site's list."""
    seen: set[str] = set()
    month_of: dict[str, Month] = {}
    for path in _list_paths(months, context):
        match = _QUESTION.fullmatch(path)
        if match is None:
            context.passed_over["not_a_choice"] += 1  # the linked page is not a question
            continue
        name = match[1]
        if name in seen:
            if name in month_of:
                yield month_of[name], Repeat(name, "on two pages of the list")
            continue
        seen.add(name)
        for month, found in _fetch(name, path, months, context):
            month_of[name] = month
            yield month, found


def _list_paths(months: Sequence[Month], context: QuestionContext) -> Iterator[str]:
    is_member = context.fetcher.token(SITE) is not None
    return (_list_for_members if is_member else _list_public)(months, context)


def _list_public(months: Sequence[Month], context: QuestionContext) -> Iterator[str]:
    """Yield the paths of questions, but for those that closed in another month by the list."""
    listing = Listing(context.fetcher, SITE, know_all_from(months))
    for number in range(1, MAX_PAGES + 1):
        page = listing.page(_PUBLIC_LIST, {"status": "resolved", "page": number}, _is_no_list)
        tree = _parse(page)
        if tree.xpath(_LOGIN):
            raise SourceUnavailable(
                f"page {number} of {SITE}'s list of resolved questions is for members; with an "
                f"account, set TIDEMARK_TOKENS__{SITE.upper()}=USER:PASSWORD"
            )
        for row in tree.xpath(_PUBLIC_ROWS):
            links = row.xpath(".//h5//a/@href")
            if not links:
                raise SourceChanged(f"{page.url}: expected a link (h5 a) in each row of the list")
            closed_at = next((read_time(time, dt.UTC) for time in row.xpath(_CLOSED)), None)
            if closed_at and Month.of(closed_at) not in months:
                context.passed_over["other_month"] += 1
            else:
                yield _path_of(page.url, links[0])
        if not tree.xpath("//a[@rel='next']"):
            return
    raise SourceChanged(f"{SITE}: its list has more than {MAX_PAGES} pages")


def _is_no_list(response: Fetched) -> bool:
    """Return True for a page with neither questions nor a login form; it is requested again."""
    return b"question-row-component" not in response.body and b"new_user" not in response.body


def _path_of(url: str, link: str) -> str:
    try:
        return urlsplit(urljoin(url, link)).path
    except ValueError:
        return ""


def _list_for_members(months: Sequence[Month], context: QuestionContext) -> Iterator[str]:
    """Yield the path of each question in the list that only members can read."""
    # Playwright takes a third of a second to import, and each list of sources imports all of them.
    from extras.browser_questions.browser.fetching import Browser, Limits
    from extras.browser_questions.browser.session import Session

    base = context.fetcher.base_url(SITE)
    since = know_all_from(months)
    with Browser(context.settings, context.fetcher, Limits(page_s=PAGE_S)) as browser:
        session = Session(browser, _log_in_of(context, base))
        url = f"{base}{_LIST}?page=1"
        passed = set[str]()
        while url not in passed:
            if len(passed) == MAX_PAGES:
                raise SourceChanged(f"{SITE}: its list has more than {MAX_PAGES} pages")
            passed.add(url)
            tree = _parse(session.read(url, _READY, not_before=since))
            if tree.xpath(_LOGIN):
                raise TokenRefused(f"{url} shows a login form to a user who is logged in")
            for link in tree.xpath(_ROWS):
                yield _path_of(url, link)
            url = _next_page(url, tree)


def _next_page(url: str, tree: Any) -> str:
    """Return the address of the next page of a list, or that of the last page itself."""
    return next((follow(url, link) for link in tree.xpath("//a[@rel='next']/@href")), url)


def _log_in_of(context: QuestionContext, base: str) -> LogIn:
    """Return how to log in; user and password are in the site's token."""
    from extras.browser_questions.browser.session import LogIn

    token = context.fetcher.token(SITE)
    user, colon, password = token.get_secret_value().partition(":") if token else ("", "", "")
    if not (user and colon and password):
        raise TokenRefused(
            f"{INFO.title}: expected USER:PASSWORD in TIDEMARK_TOKENS__{SITE.upper()}"
        )
    return LogIn(
        url=f"{base}/users/sign_in",
        user=user,
        password=SecretStr(password),
        user_field="#user_email",
        password_field="#user_password",  # noqa: S106 - a CSS selector
        submit="#new_user [type=submit]",
        done="a[href='/users/sign_out']",
        refused=".alert-danger",
    )


def _fetch(
    name: str, path: str, months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield a question with its month; nothing if it is open, or of another month."""
    try:
        fetched = context.fetcher.get(SITE, path)
        page = _Page(name, fetched)
        if not page.is_final:  # the cached page may be older than the answer
            fetched = context.fetcher.get(SITE, path, not_before=know_all_from(months))
            page = _Page(name, fetched)
    except (ItemUnavailable, ItemFailed) as error:
        # The question's month is unknown, so the question may be missing in any of the months.
        for month in months:
            found = missing_item(f"{name} ({month})" if len(months) > 1 else name, error)
            if isinstance(found, Failure) or month == max(months):
                yield month, found
        return
    if page.closed_at is None:
        context.passed_over["no_date"] += 1
        return
    month = Month.of(page.closed_at)
    if month not in months:
        context.passed_over["other_month"] += 1
    elif not page.is_final:
        context.passed_over["open"] += 1
    else:
        yield month, page.question(page.closed_at)


class _Page:
    def __init__(self, name: str, fetched: Fetched) -> None:
        self._name = name
        self._url = fetched.url
        self._tree = _parse(fetched)
        self.opened_at = self._instant("Started")
        self.closed_at = self._instant("Closed")
        rows = self._tree.xpath("//tbody//tr[count(td) >= 3]")
        self._options = tuple(_text(row.xpath("td[1]")[0]) for row in rows)
        self._right = [
            index
            for index, row in enumerate(rows)
            if row.xpath(".//i[contains(concat(' ', @class, ' '), ' fa-check-circle ')]")
        ]
        self._shares = [_share(row.xpath("td[3]")[0]) for row in rows]
        self._boxes = self._tree.xpath("//div[contains(concat(' ', @class, ' '), ' smb ')]")
        # Search the alert boxes only: a description may mention voiding.
        notes = self._tree.xpath("//div[contains(concat(' ', @class, ' '), ' alert ')]")
        self._is_void = not self._right and any(_VOID.search(_text(note)) for note in notes)

    @property
    def is_final(self) -> bool:
        return bool(self._right) or self._is_void

    def question(self, closed_at: dt.datetime) -> Question | Drop:
        """Return the question that the page shows, or why it is left out."""
        title = "".join(map(_text, self._tree.xpath("//h3[@id='question-name-header']")))
        if not title or len(self._options) < 2:
            return Drop(self._name, "parse_error", f"{self._url}: no title, or no two options")
        if self.opened_at is None:
            return Drop(self._name, "no_date", f"{self._url}: no Started")
        if len(self._right) > 1:
            return Drop(self._name, "unknown_format", "several answers are right")
        return Question(
            question_id=self._name,
            source=SITE,
            url=self._url,
            title=title,
            background=self._description(),
            options=self._options,
            answer_index=self._right[0] if self._right else None,
            opened_at=self.opened_at,
            closed_at=closed_at,
            resolved_at=closed_at,
            status="resolved" if self._right else "void",
            tags=self._tags(),
            crowd_forecast=tuple(
                CrowdForecast(option, share)
                for option, share in zip(self._options, self._shares, strict=True)
                if share is not None
            ),
            licence=INFO.licence,
        )

    def _instant(self, heading: str) -> dt.datetime | None:
        """Return the time below a heading in UTC, from an attribute; the visible time is local."""
        found = self._tree.xpath(
            "//span[contains(@class, 'info-heading')][normalize-space(translate(., ':', ' '))=$h]"
            "/following::span[@data-localizable-timestamp][1]/@data-localizable-timestamp",
            h=heading,
        )
        return read_time(found[0], dt.UTC) if found else None

    def _tags(self) -> tuple[str, ...]:
        boxes = [box for box in self._boxes if _heading(box) in {"Tags", "Challenges"}]
        boxes.sort(key=lambda box: _heading(box) != "Tags")
        return tuple(dict.fromkeys(_text(link) for box in boxes for link in box.xpath(".//a")))

    def _description(self) -> str | None:
        boxes = [box for box in self._boxes if not _heading(box)]
        texts = [_paragraphs(box) for box in boxes]
        return "\n\n".join(filter(None, texts)) or None


def _parse(fetched: Fetched) -> Any:
    try:
        return html.document_fromstring(fetched.body, parser=html.HTMLParser(encoding="utf-8"))
    except (etree.ParserError, ValueError) as error:
        raise SourceChanged(f"{fetched.url}: expected a page of HTML ({error})") from error


def _heading(box: Any) -> str:
    return "".join(map(_text, box.xpath(".//*[contains(@class, 'info-heading')]"))).rstrip(":")


def _paragraphs(box: Any) -> str:
    blocks = box.xpath(".//p | .//li") or [box]
    return "\n\n".join(filter(None, map(_text, blocks)))


def _text(element: Any) -> str:
    return " ".join(element.text_content().split())


def _share(cell: Any) -> float | None:
    found = _PERCENT.search(_text(cell))
    return None if found is None else min(float(found[1]) / 100, 1.0)
