"""Simulated wikis and dumps of Wikimedia; ``simulator/wiki.py`` generates the pages.

The articles of Wikinews are the world's stories, each dated to a day of the month. Every month also
has one of each kind in ODDITIES (pages that crawlers must drop).

The dumps hold the history of edits in this format:
https://wikitech.wikimedia.org/wiki/Data_Platform/Data_Lake/Edits/MediaWiki_history_dumps. The
English wiki has one file per month, the German wiki one file per year. ``Dumps.num_columns`` is 76
(the published layout) or 78 (with event_log_id and event_user_is_cross_wiki).
"""

from __future__ import annotations

import bz2
import datetime as dt
import re
import zlib
from collections.abc import Sequence

from core.month import Month
from simulator.limits import LimitedSite
from simulator.mediawiki import WikiSite
from simulator.server import Request, Response, as_html, ranged, take_quirk
from simulator.wiki import FIRST_NEW_PAGE, PAGES_A_MONTH, Page, Wiki, revisions_of
from simulator.world import Story, World

FOLDER = "/other/mediawiki_history/"
_PAGE_ID = {76: 26, 78: 28}
ODDITIES = ("redirect", "unpublished", "late", "suppressed", "disambiguation")
_SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)
_SOURCES = """== Sources ==
*{{source|url=https://example.org/a
|title=A report
|author=The desk
|pub=Example
|date=January 1, 2020}}"""


class Wikipedia(WikiSite):
    """The English Wikipedia."""

    keys: tuple[str, ...] = ("wikipedia",)

    def __init__(self, world: World) -> None:
        super().__init__(Wiki(world))


class GermanWikipedia(WikiSite):
    """The German Wikipedia."""

    keys: tuple[str, ...] = ("wikipedia_de",)

    def __init__(self, world: World) -> None:
        super().__init__(Wiki(world.in_german()))


class Wikinews(WikiSite):
    """The English Wikinews."""

    keys: tuple[str, ...] = ("wikinews",)

    def __init__(self, world: World) -> None:
        super().__init__(NewsWiki(world))


class NewsWiki(Wiki):
    """All articles of the simulated Wikinews."""

    oddities = ODDITIES

    def page(self, page_id: int) -> Page | None:
        """Return an article; None if no article has the id."""
        return super().page(page_id) if page_id >= FIRST_NEW_PAGE else None

    def members(self, category: str) -> list[Page]:
        """Return the articles of a day's category, such as ``Category:April 10, 2018``."""
        try:
            day = dt.datetime.strptime(category, "Category:%B %d, %Y").replace(tzinfo=dt.UTC)
        except ValueError:
            return []
        pages = self.pages_created(Month.of(day))
        return [page for page in pages if self._day(page.page_id) == day]

    def _day(self, page_id: int) -> dt.datetime:
        offset, number = divmod(page_id - FIRST_NEW_PAGE, PAGES_A_MONTH)
        month = self.world.first + offset
        days = (month.end - month.start).days
        drawn = self.world.generator("wikinews", month, number).randrange(days)
        return month.start + {0: 0, 1: days - 1}.get(number, drawn) * _DAY

    def _make(self, page_id: int, month: Month, number: int) -> Page:
        """Return an article's page with its revisions; odd ones are redirects or unpublished."""
        story = self.world.story(month, "wikinews", number)
        day = self._day(page_id)
        oddity = self._oddity_of(number)
        whole = news_article(story, self.world, day)
        draft = whole.replace("{{publish}}", "{{develop}}")
        texts: list[tuple[dt.datetime, str | None]] = [
            (day + 9 * 3600 * _SECOND, draft),
            (min(day + 20 * 3600 * _SECOND, month.end - _SECOND), whole),
        ]
        if oddity == "redirect":
            texts = [(day, f"#REDIRECT [[{story.title} again]]")]
        elif oddity == "unpublished":
            texts = texts[:1]
        elif oddity == "late":
            texts[1] = (month.end, whole)
        elif oddity == "suppressed":
            texts = [(day, None)]
        elif number % 2 == 0:  # this page gets an archive notice in a later month
            texts.append((month.end + number * _DAY, f"{{{{archived}}}}\nLater.\n{whole}"))
        return Page(page_id, story.title, revisions_of(page_id, texts), oddity)


def news_article(story: Story, world: World, day: dt.datetime) -> str:
    """Return a story as wikitext of a published article."""
    blocks = [_linked(paragraph, story, world) for paragraph in story.paragraphs]
    date = f"{day:%B} {day.day}, {day.year}"
    return "\n\n".join(
        [
            f"{{{{date|{date}}}}}\n{{{{{story.topic.capitalize()}}}}}",
            "[[Image:View.jpg|thumb|left|View of the town.{{image source|[[User:Example]]}}]]",
            *blocks,
            "{{haveyoursay}}\n== Related news ==\n*{{wikinews|title=Earlier|date=May 1, 2019}}",
            _SOURCES,
            f"{{{{publish}}}}\n[[Category:{story.topic.capitalize()}]]\n[[Category:Europe]]",
        ]
    )


def _linked(paragraph: str, story: Story, world: World) -> str:
    names = [name for name in world.names(story.month) if re.search(rf"\b{name}\b", paragraph)]
    first, second, *_ = [*names, "-", "-"]
    paragraph = re.sub(rf"\b{first}\b", f"{{{{w|{first}}}}}", paragraph, count=1)
    shown = f"{{{{w|{second} (name)|{second}|anchor=Life}}}}"
    return re.sub(rf"\b{second}\b", shown, paragraph, count=1)


class Dumps(LimitedSite):
    """Simulated dumps.wikimedia.org: one snapshot of two wikis, and a dead link to an older one."""

    keys: tuple[str, ...] = ("wikimedia_dumps",)
    num_columns = 76

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._wikis = {"enwiki": Wiki(world), "dewiki": Wiki(world.in_german())}
        self._snapshot = str(world.last)

    def respond_unlimited(self, request: Request) -> Response:
        """Respond with the links of a folder, or the content of a file from the asked byte on."""
        snapshot = self._snapshot
        wikis = self._wikis
        if request.path == FOLDER:
            return _listing([f"{self.world.last - 1}/", f"{snapshot}/", "readme.html"])
        if request.path == f"{FOLDER}{snapshot}/":
            return _listing([f"{name}/" for name in wikis])
        found = re.fullmatch(rf"{FOLDER}{snapshot}/(\w+)/(.*)", request.path)
        if not found or found[1] not in wikis:
            return Response(404)
        files = self._files(found[1])
        if not found[2]:
            return _listing([] if take_quirk(self, "empty_page") else sorted(files))
        if found[2] not in files:
            return Response(404)
        events = _events(wikis[found[1]], files[found[2]], self.num_columns)
        body = bz2.compress(events.encode())
        return ranged(body, {"ETag": f'"{zlib.crc32(body):x}"'}, request)

    def _files(self, database: str) -> dict[str, list[Month]]:
        files: dict[str, list[Month]] = {}
        for month in self.world.months:
            span = str(month) if database == "enwiki" else str(month)[:4]
            files.setdefault(f"{self._snapshot}.{database}.{span}.tsv.bz2", []).append(month)
        return files


def _events(wiki: Wiki, months: Sequence[Month], num_columns: int) -> str:
    lines = []
    for month in months:
        for new in sorted(wiki.pages_created(month), key=lambda new: new.revisions[0].timestamp):
            events = (("page", "create"), ("revision", "create"), ("page", "move"))
            lines += [_line(wiki, new, num_columns, *event) for event in events]
    return "".join(f"{line}\n" for line in lines)


def _line(wiki: Wiki, new: Page, num_columns: int, entity: str, event: str) -> str:
    """Return a line of the dump of histories, in its version of so many columns."""
    log_id = [str(new.page_id + 7)] if num_columns == 78 else []
    moment = f"{new.revisions[0].timestamp:%Y-%m-%d %H:%M:%S}.0"
    comment = r"a comment with\ta tabulator"
    columns = [f"{wiki.language}wiki", *log_id, entity, event, moment, comment]
    columns += [""] * (num_columns - len(columns))
    page_id = _PAGE_ID[num_columns]
    is_gone = new.oddity == "deleted"
    title = new.title.removeprefix("Draft:").replace(" ", "_")
    columns[page_id] = "" if is_gone else str(new.page_id)
    columns[page_id + 1 : page_id + 4] = [title, "" if is_gone else title, "0"]
    columns[page_id + 8] = "true" if is_gone else "false"
    return "\t".join(columns)


def _listing(names: Sequence[str]) -> Response:
    links = "".join(f'<a href="{name}">{name}</a>\n' for name in ("../", *names))
    return as_html(f"<pre>{links}</pre>")


SITE_KINDS = (Wikipedia, GermanWikipedia, Wikinews, Dumps)
