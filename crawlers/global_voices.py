"""Global Voices: stories by an international community of writers and translators.

WordPress's REST API (https://developer.wordpress.org/rest-api/reference/posts/) returns a month's
stories with full text on one or two pages. robots.txt asks for 10 s between requests. A story
belongs to the month of ``date_gmt``. The API filters by ``date``, which is in the site's own time
zone. So the requested window is one day wider than the month on both sides. A story that was saved
after the month (``modified_gmt``) is dropped (``edited_later``), because WordPress does not
distinguish corrections from rewrites. Stories republished by agreement with other media are not
under CC BY. Their text says so, and they are dropped (``licence``). The API does not return author
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
from core.month import Month
from crawlers.contract import CrawlContext, Document, Drop, Item, Repeat, SourceInfo, missing_item
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
)
PATH = "/wp-json/wp/v2/posts"
PER_PAGE = 100  # posts per page, the maximum that WordPress allows
FIELDS = "id,date_gmt,modified_gmt,link,title,content,status,type"

_DAY = dt.timedelta(days=1)
# Phrases in stories that other media published first. A phrase must name an agreement: "was first
# published on Rising Voices" alone refers to a section of Global Voices itself.
_AGREEMENT = re.compile(
    r"content[- ](?:sharing|partnership)|content partners?\b|media partnership agreement"
    r"|(?:originally|first) (?:published|appeared)[^.\n]{0,200}"
    r"(?:republished|reprinted|reproduced|with permission|edited version)"
    r"|(?:republished|reprinted|reproduced)[^.\n]{0,200}(?:with|by) permission",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Row:
    native_id: str
    post: dict[str, Any]
    language: str
    retrieved_at: dt.datetime


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield posts by language and date; sampled crawls use a seeded random order."""
    languages = context.languages or (INFO.language,)
    lists = (_list_posts(month, language, context.fetcher) for language in languages)
    rows = itertools.chain.from_iterable(lists)
    return context.sample_list(rows, lambda row: row.native_id, lambda row: [_examine(row, month)])


def _list_posts(month: Month, language: str, fetcher: Fetcher) -> Iterator[_Row | Drop | Repeat]:
    key = INFO.site_key(SITE, language)
    seen: set[int] = set()
    number, num_pages = 1, 1
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
            if not isinstance(native_id, int):
                yield Drop(where, "parse_error", "no id")
            elif native_id in seen:
                yield Repeat(_name(native_id, language), where)
            else:
                seen.add(native_id)
                yield _Row(_name(native_id, language), post, language, page.retrieved_at)
        number += 1


def _name(native_id: int, language: str) -> str:
    """Return a post's native id, with a language prefix: each language's site counts from 1."""
    return str(native_id) if language == INFO.language else f"{language}:{native_id}"


def _is_no_list(fetched: Fetched, page: int) -> bool:
    answer = decode(fetched)
    if isinstance(answer, dict):
        return "code" in answer  # a WordPress error has the fields code, message and data
    total = fetched.headers.get("x-wp-total", "")
    return answer is None or (
        answer == [] and total.isdecimal() and int(total) > (page - 1) * PER_PAGE
    )


def _read_list(page: Fetched) -> tuple[list[Any], int]:
    posts, num_pages = decode(page), page.headers.get("x-wp-totalpages", "")
    if isinstance(posts, list) and num_pages.isdecimal() and num_pages.isascii():
        return posts, int(num_pages)
    raise SourceChanged(
        f"{page.url} is not as documented; expected a list, and its pages in X-WP-TotalPages"
    )


def _examine(row: _Row, month: Month) -> Item:
    native_id, post = row.native_id, row.post
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
    if agreement := _AGREEMENT.search(text):
        return Drop(native_id, "licence", f"written for another medium: {agreement[0]!r}")
    return _document(row, text, title, published, changed)


def _document(
    row: _Row, text: str, title: str, published: dt.datetime, changed: dt.datetime
) -> Document:
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
