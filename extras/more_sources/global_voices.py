"""Global Voices: stories by an international community of writers and translators.

WordPress's REST API (https://developer.wordpress.org/rest-api/reference/posts/) returns a month's
stories with full text on one or two pages. robots.txt asks for 10 s between requests. A story
belongs to the month of ``date_gmt``. The API filters by ``date``, which is in the site's own time
zone. So the requested window is one day wider than the month on both sides. A story that was saved
after the month (``modified_gmt``) is dropped (``edited_later``), because WordPress does not
distinguish corrections from rewrites. Stories that other media published first are not under CC BY.
A note in the text says so, and they are dropped (``licence``). The API does not return author
names (status 401), but the page that the attribution links to has them. Deleted stories are not in
the API. Other languages have sites of their own, mostly with translations. Some host names differ
from the language code. For Japanese, set
``TIDEMARK_SITES__GLOBAL_VOICES_JA=https://jp.globalvoices.org``.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.errors import ItemUnavailable, SourceChanged
from core.json import JsonObject
from core.month import Period
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo, missing_item
from crawlers.text import articles
from crawlers.web.fetcher import Fetched, Fetcher, decode, get_list, read_time

SITE = "global_voices"
INFO = SourceInfo(
    name="global_voices",
    title="Global Voices: stories",
    licence="CC-BY-3.0",
    language="en",
    category="news",
    sites={SITE: "https://globalvoices.org"},
    language_sites={SITE: "https://{language}.globalvoices.org"},
    request_interval_s=10.0,
    monthly_bytes=1_500_000,
    whole_months=None,
)
PATH = "/wp-json/wp/v2/posts"
PER_PAGE = 100  # posts per page, the maximum that WordPress allows
MAX_PAGES = 100  # far more than a month has
FIELDS = "id,date_gmt,modified_gmt,link,title,content,status,type"

_DAY = dt.timedelta(days=1)
# Notes in stories that other media published first. They are among the first or last blocks, except
# for the words of an agreement. Sections of Global Voices itself are no other media.
_NOTE_BLOCKS = 3
_MAX_NOTE_CHARS = 1_000
_MAX_LINE_CHARS = 200
_OWN = r"(?i:(?:the |our )?(?:Global ?Voices|GV\b|Rising ?Voices|Advox|NewsFrames|sister ))"
_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_LANGUAGES = (
    "English|Spanish|French|Portuguese|Italian|German|Dutch|Greek|Polish|Czech|Hungarian|Romanian"
    "|Bulgarian|Macedonian|Serbian|Albanian|Russian|Ukrainian|Turkish|Arabic|Farsi|Persian|Hebrew"
    "|Hindi|Urdu|Bengali|Bangla|Nepali|Tamil|Burmese|Thai|Indonesian|Malay|Chinese|Japanese|Korean"
    "|Swahili|Amharic|Malagasy|Creole"
)
_WHEN = rf"(?:in|on) (?:\d{{4}}|(?:\d\d? )?{_MONTHS}(?: \d\d?)?(?:,? \d{{4}})?)"
_MEDIUM = r"(?:\W?[A-Z\d]|[a-z-]+[A-Z.]\w|(?:the|an?|his|her|their|my)\b)"
_WHERE = (  # language and date are skipped; a medium follows
    rf"(?:,? (?:in (?:{_LANGUAGES})(?! [A-Z])|{_WHEN}))*+"
    rf",? (?:by|on|at|with|for|via|in(?= {_MEDIUM})) (?!{_OWN})(?![^.\n]{{0,60}} on {_OWN})"
)
_FIRST = (
    r"(?i:(?:originally|first|initially|previously|earlier) (?:been )?"
    r"(?:published|appeared|posted|printed|aired|released|produced|ran|written(?= for)))"
)
_KINDS = "article|story|post|piece|essay|op-ed|commentary|column|interview"
_MORE_KINDS = "report|reportage|feature|text|analysis|investigation|translation|version|podcast"
_SUBJECT = (
    rf"(?i:\b(?:this|the (?:following|above)) (?:[\w’'-]+ ){{0,3}}?(?:{_KINDS}|{_MORE_KINDS}))"
    r"(?=[,(:–—]| (?:was|is|has|had|by|from|about|on|of|which|that|originally|first|initially"
    r"|previously|earlier|appeared|written)\b)"
)
_GAP = (
    r"(?:(?!(?i:\b(?:based|cites|quotes|draws|reviews|mentions|study|book|novel)\b))[^\n]){0,160}?"
)
_AGAIN = r"(?:re-?published|re-?printed|re-?posted|cross-?posted|reproduced|syndicated)"
_IN_NOTES = re.compile(
    rf"{_SUBJECT}{_GAP}\b{_FIRST}{_WHERE}"
    rf"|(?i:\bthis (?:\w+ )?(?:{_KINDS}) (?:was|has been) published){_WHERE}"
    rf"|(?i:\b{_AGAIN})[^\n]{{0,120}}?\b(?:here\b|(?:on|by) {_OWN}|(?i:(?:with|by) permission"
    r"|(?:under|part of|through|via) [\w -]{1,30}(?:agreement|partnership)))"
)
_AS_LINE = re.compile(
    rf"\W*(?:\w+[’']s )?(?i:note\W+)?(?:{_FIRST}{_WHERE}|(?i:{_AGAIN} (?:from|with|by|courtesy)\b))"
)
_ANYWHERE = re.compile(
    r"content[- ](?:sharing|partnership)|content partners?\b|media partnership agreement"
    rf"|{_AGAIN}[^.\n]{{0,200}}(?:with|by|under)[^.\n]{{0,30}}(?:permission|agreement)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Row:
    native_id: str
    post: JsonObject
    language: str
    retrieved_at: dt.datetime


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield posts by language and date; sampled crawls use a seeded random order."""
    languages = context.languages or (INFO.language,)
    lists = (_list_posts(month, language, context.fetcher) for language in languages)
    rows = itertools.chain.from_iterable(lists)
    return context.sample_list(rows, lambda row: row.native_id, lambda row: [_examine(row, month)])


def _list_posts(month: Period, language: str, fetcher: Fetcher) -> Iterator[_Row | Drop]:
    """Yield the posts of a month and a day around it, page by page."""
    key = INFO.site_key(SITE, language)
    number = 1
    num_pages = 1
    while number <= num_pages:
        params: dict[str, str | int] = {
            "after": f"{month.start - _DAY:%Y-%m-%dT%H:%M:%S}",
            "before": f"{month.end + _DAY:%Y-%m-%dT%H:%M:%S}",
            "order": "asc", "orderby": "date", "page": number, "per_page": PER_PAGE,
            "_fields": FIELDS,
        }  # fmt: skip
        is_busy = functools.partial(_is_no_list, page=number)
        page = get_list(fetcher, key, PATH, params, is_busy)
        posts, num_pages = _read_list(page)
        for position, post in enumerate(posts, 1):
            where = f"post {position} of page {number} ({language}, {month})"
            native_id = post.get("id") if isinstance(post, dict) else None
            if type(native_id) is not int or not 0 < native_id < 10**12:
                yield Drop(where, "parse_error", "no id")
            else:
                yield _Row(_name(native_id, language), post, language, page.retrieved_at)
        number += 1


def _name(native_id: int, language: str) -> str:
    """Return a post's native id, with a language prefix: each language's site counts from 1."""
    return str(native_id) if language == INFO.language else f"{language}:{native_id}"


def _is_no_list(fetched: Fetched, page: int) -> bool:
    """Return True for an error, or an empty page within the list."""
    response = decode(fetched)
    if isinstance(response, dict):
        return "code" in response  # a WordPress error has the fields code, message and data
    total = _count(fetched, "x-wp-total") or 0
    return response is None or (response == [] and total > (page - 1) * PER_PAGE)


def _read_list(page: Fetched) -> tuple[list[Any], int]:
    """Return the posts of a page, and the number of all pages."""
    posts = decode(page)
    num_pages = _count(page, "x-wp-totalpages")
    if isinstance(posts, list) and num_pages is not None and num_pages <= MAX_PAGES:
        return posts, num_pages
    raise SourceChanged(
        f"{page.url} is not as documented; expected a list, and at most {MAX_PAGES} pages in "
        "X-WP-TotalPages"
    )


def _count(fetched: Fetched, header: str) -> int | None:
    value = fetched.headers.get(header, "")
    return int(value) if re.fullmatch("[0-9]{1,9}", value) else None


def _examine(row: _Row, month: Period) -> Item:
    """Return a post as a document, or why it is left out."""
    native_id = row.native_id
    post = row.post
    published = read_time(post.get("date_gmt"), dt.UTC)
    if published is None:
        return Drop(native_id, "no_date", f"date_gmt: {post.get('date_gmt')!r}")
    if published not in month:
        return Drop(native_id, "outside_month", f"published {published.isoformat()}")
    content = post.get("content")
    body = content.get("rendered") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(body, str):
        return Drop(native_id, "parse_error", "content.rendered was expected, as text")
    if content.get("protected") or post.get("status", "publish") != "publish":
        return Drop(native_id, "suppressed", "behind a password, or not public any more")
    # A scheduled post is last saved before its publication, so use the later of the two times.
    changed = max(published, read_time(post.get("modified_gmt"), dt.UTC) or published)
    if changed >= month.end:
        return Drop(native_id, "edited_later", f"saved {changed.isoformat()}")
    try:
        text = articles.to_text(body)
        title = articles.to_line(_rendered(post.get("title")))
    except ItemUnavailable as error:
        return missing_item(native_id, error)
    note = find_note(text)
    if note:
        return Drop(native_id, "licence", f"written for another medium: {note!r}")
    return _document(row, text, title, published, changed)


def find_note(text: str) -> str | None:
    """Return the words of a text that say that another medium published it first, or None."""
    found = _ANYWHERE.search(text)
    if found:
        return found[0]
    blocks = text.split("\n\n")
    for block in {*blocks[:_NOTE_BLOCKS], *blocks[-_NOTE_BLOCKS:]}:
        line = " ".join(block.split())
        found = _IN_NOTES.search(line) if len(line) <= _MAX_NOTE_CHARS else None
        if found is None and len(line) <= _MAX_LINE_CHARS:
            found = _AS_LINE.match(line)
        if found:
            return found[0]
    return None


def _document(
    row: _Row, text: str, title: str, published: dt.datetime, changed: dt.datetime
) -> Document:
    """Return a post as a document; its address is made from the id if the link is none."""
    link = row.post.get("link")
    is_address = isinstance(link, str) and re.match(r"https?://[^\s<>\"']+\Z", link)
    site = INFO.all_sites((row.language,))[INFO.site_key(SITE, row.language)]
    url = str(link) if is_address else f"{site}/?p={row.post['id']}"
    return Document(
        native_id=row.native_id,
        version_id=changed.isoformat(),
        text=text,
        title=title,
        url=url,
        event_time=published,
        date_kind="published",
        text_as_of=changed,
        retrieved_at=row.retrieved_at,
        licence=INFO.licence,
        attribution=f"“{title}”, Global Voices, {url}; pictures, tables and embeds left out",
        cluster_id=f"post:{row.native_id}",
        language=row.language,
    )


def _rendered(field: object) -> str:
    html = field.get("rendered") if isinstance(field, dict) else None
    return html if isinstance(html, str) else ""
