"""The pages and page histories of a simulated wiki, generated from the world.

A new page (source ``wikipedia_new``) is a story. Each new page has a stub revision and a full
revision; every second page also has a revision of a later month. Every month also has one page of
each kind in ODDITIES (special cases such as redirects). Monitored pages (source
``wikipedia_monitored``) have the titles in TITLES; a few are redirects. A monitored page has a
constant lead and a section about the month's story. The text depends only on world and page id.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, replace
from typing import ClassVar

from core.month import Month
from simulator.world import Story, World

# By language: heading of the last section, markup before the text, markup after the text.
_ARTICLES = {
    "en": (
        "Aftermath",
        (
            "{{Short description|Recent event}}\n{{Infobox event\n| name = TITLE",
            "| map = {{Location map|World|label={{nowrap|Here}}}}\n}}",
            "[[File:View.jpg|thumb|upright=1.2|A view, seen from the [[tower]].]]",
        ),
        (
            '{| class="wikitable"\n! Year !! Count\n|-\n| 1 || 2\n|}',
            "== See also ==\n* [[List of events]]\n\n=== Elsewhere ===\n* [[Other lists]]",
            "==References==\n{{Reflist}}\n<references />",
            "== External links ==\n* [https://example.org/ Official site]\n{{Navbox events}}",
            "[[Category:TOPIC]]\n[[Category:Events]]",
        ),
    ),
    "de": (
        "Nachwirkung",
        (
            "{{Infobox Ereignis\n| Name = TITLE\n}}",
            "[[Datei:Ansicht.jpg|mini|hochkant=1.2|Eine Ansicht, vom [[Turm]] aus.]]",
        ),
        (
            '{| class="wikitable"\n! Jahr !! Zahl\n|-\n| 1 || 2\n|}',
            "== Siehe auch ==\n* [[Liste von Ereignissen]]",
            "== Literatur ==\n* Ein Buch. ISBN 3-00-000000-0.",
            "== Weblinks ==\n* [https://example.org/ Offizielle Seite]",
            "== Einzelnachweise ==\n<references />\n{{Navigationsleiste Ereignisse}}",
            "[[Kategorie:Ereignis]]",
        ),
    ),
}
# Template of a monitored page by language: a constant lead, then the month's section.
_MONITORED = {
    "en": """{{Infobox subject}}
The subject of this article has been '''documented''' for long.

== Developments ==
TEXT

== Notes ==
{{Notelist}}

== Further reading ==
* ''A book''

[[Category:TOPIC]]""",
    "de": """{{Infobox Thema}}
Das Thema dieses Artikels ist seit langem '''dokumentiert'''.

== Entwicklungen ==
TEXT

== Literatur ==
* ''Ein Buch''

== Einzelnachweise ==
<references />

[[Kategorie:Thema]]""",
}


def article(story: Story, world: World, paragraphs: tuple[str, ...] = ()) -> str:
    """Return a story as wikitext; if there are three or more paragraphs, the last has a heading."""
    heading, before, after = _ARTICLES[world.language]
    blocks = [_marked_up(text, story, world) for text in paragraphs or story.paragraphs]
    if len(blocks) > 2:
        blocks[-1] = f"== {heading} ==\n{blocks[-1]}"
    whole = "\n\n".join([*before, *blocks, *after])
    return whole.replace("TITLE", story.title).replace("TOPIC", story.topic.capitalize())


def _marked_up(paragraph: str, story: Story, world: World) -> str:
    """Add markup that does not change the visible text: links, emphasis, comments, footnotes."""
    names = [name for name in world.names(story.month) if re.search(rf"\b{name}\b", paragraph)]
    first, second, third, *_ = [*names, "-", "-", "-"]
    paragraph = re.sub(rf"\b{first}\b", f"'''[[{first}]]'''", paragraph, count=1)
    paragraph = re.sub(rf"\b{second}\b", f"[[{second} (name)|{second}]]", paragraph, count=1)
    paragraph = re.sub(rf"\b{third}\b", f"<i>{third}</i><!-- check -->", paragraph, count=1)
    note = '.<ref name="a">{{cite web |url=https://example.org/a |title=A [[note]]}}</ref> '
    return paragraph.replace(". ", note, 1) + '<ref name="a" />'


# Titles of monitored pages: German title by English title; None without a German page.
TITLES = {
    "Argentina": "Argentinien",
    "Australia": "Australien",
    "Berlin": "Berlin",
    "Cryptocurrency": "Kryptowährung",
    "FIFA World Cup": "Fußball-Weltmeisterschaft",
    "Formula One": "Formel 1",
    "India": "Indien",
    "Malaria": "Malaria",
    "Microsoft": "Microsoft",
    "NATO": "NATO",
    "Quantum computing": "Quanteninformatik",
    "South Africa": "Südafrika",
    "Sweden": "Schweden",
    "Taiwan": None,
    "Tesla, Inc.": "Tesla, Inc.",
    "United States": "Vereinigte Staaten",
    "Vietnam": "Vietnam",
}
ODDITIES = ("redirect", "disambiguation", "short", "deleted", "suppressed", "moved", "concealed")

FIRST_NEW_PAGE = 1_000_000  # lower page ids belong to monitored pages
PAGES_A_MONTH = 1_000
_REVISIONS_A_PAGE = 10_000
_SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Revision:
    """One revision of a page; ``wikitext`` is None if the revision is suppressed."""

    revision_id: int
    timestamp: dt.datetime
    wikitext: str | None
    is_minor: bool = False


@dataclass(frozen=True)
class Page:
    """A page with all its revisions, oldest first."""

    page_id: int
    title: str
    revisions: tuple[Revision, ...]
    oddity: str = ""  # kind of special case (see ODDITIES); empty for an ordinary article

    @property
    def namespace(self) -> int:
        """The namespace id of the page: 118 (Draft) or 0 (article)."""
        return 118 if self.oddity == "moved" else 0


class Wiki:
    """All pages of a wiki in the world's language, generated on demand."""

    oddities: ClassVar[tuple[str, ...]] = ODDITIES

    def __init__(self, world: World) -> None:
        self.world = world
        self.language = world.language
        self._total = world.stories_per_month + len(self.oddities)  # new pages in a month
        self._titles: dict[int, str] = {}  # titles of requested monitored pages, by page id
        self._made: dict[int, Page] = {}  # cache: generating a page is slow

    def page(self, page_id: int) -> Page | None:
        """Return a page, even if it was deleted; None if no page has the id."""
        if page_id < 1:
            return None
        if page_id < FIRST_NEW_PAGE:
            return self._monitored(page_id)
        offset, number = divmod(page_id - FIRST_NEW_PAGE, PAGES_A_MONTH)
        month = self.world.first + offset
        is_there = month <= self.world.last and number < self._total
        return self._created(month, number) if is_there else None

    def page_of_revision(self, revision_id: int) -> Page | None:
        """Return the page that a revision id belongs to, even if the revision does not exist."""
        return self.page(revision_id // _REVISIONS_A_PAGE)

    def pages_created(self, month: Month) -> list[Page]:
        """Return a month's new pages, special cases last; no pages outside the world's months."""
        if not self.world.first <= month <= self.world.last:
            return []
        return [self._created(month, number) for number in range(self._total)]

    def find(self, title: str) -> tuple[Page | None, str]:
        """Return the page for a title, and the page's own title (differs for a redirect)."""
        base = title.removesuffix(" (topic)")
        if base not in self._subjects():
            return None, title
        value = int.from_bytes(hashlib.sha256(base.encode()).digest()[:8])
        target = title if value // 6 % 4 else f"{base} (topic)"
        page_id = 1 + value // 24 % (FIRST_NEW_PAGE - 1)
        self._titles[page_id] = target
        return self._monitored(page_id), target

    def _subjects(self) -> list[str]:
        return [title for title in (TITLES if self.language == "en" else TITLES.values()) if title]

    def subjects(self) -> list[Page]:
        """Return the monitored pages."""
        found = [self.find(title)[0] for title in self._subjects()]
        return [page for page in found if page]

    def pages_edited(self, month: Month) -> list[Page]:
        """Return all pages that may have been edited in a month."""
        months = [month - number for number in range(4)]  # edits end within 3 months of creation
        return [*self.subjects(), *(page for each in months for page in self.pages_created(each))]

    def members(self, category: str) -> list[Page]:
        """Return the pages of a category; always empty here."""
        return []

    def title_in(self, language: str, title: str) -> str | None:
        """Return a monitored page's title in another language, or None."""
        base = title.removesuffix(" (topic)")
        return TITLES.get(base) if (self.language, language) == ("en", "de") else None

    def _created(self, month: Month, number: int) -> Page:
        page_id = FIRST_NEW_PAGE + month.months_since(self.world.first) * PAGES_A_MONTH + number
        if page_id not in self._made:
            self._made[page_id] = self._make(page_id, month, number)
        return self._made[page_id]

    def _oddity_of(self, number: int) -> str:
        place = number - self.world.stories_per_month
        return self.oddities[place] if place >= 0 else ""

    def _make(self, page_id: int, month: Month, number: int) -> Page:
        """Return a page that was created in a month, with its revisions."""
        rng = self.world.generator("wikipedia_new", month, number)
        story = self.world.story(month, "wikipedia_new", number)
        length_s = int((month.end - month.start).total_seconds())
        created = month.start + rng.randrange(length_s) * _SECOND
        if number == 0:
            created = month.start
        elif number == 1:
            created = month.end - _SECOND
        oddity = self._oddity_of(number)
        texts: list[tuple[dt.datetime, str | None]]
        if oddity:
            texts = [(created, _odd_text(oddity, story, article(story, self.world)))]
        else:
            texts = [
                (created, article(story, self.world, story.paragraphs[:1])),
                (min(created + _DAY, month.end - _SECOND), article(story, self.world)),
            ]
        if number % 2 == 0 and not oddity:
            later = self.world.story(month + 2, "wikipedia_new", number)
            texts.append((later.month.start + number * _DAY / 2, article(later, self.world)))
        title = f"Draft:{story.title}" if oddity == "moved" else story.title
        return Page(page_id, title, revisions_of(page_id, texts), oddity)

    def _monitored(self, page_id: int) -> Page:
        """Return a page that is edited in most months."""
        title = self._titles.get(page_id, f"Page {page_id}")
        if page_id not in self._made:
            months = self.world.months
            is_late = page_id % 8 == 0
            edited = months[len(months) // 2 :] if is_late else [months[0] - 1, *months]
            history = [revision for month in edited for revision in self._month_of(page_id, month)]
            self._made[page_id] = Page(page_id, title, tuple(history))
        return replace(self._made[page_id], title=title)

    def _month_of(self, page_id: int, month: Month) -> list[Revision]:
        """Return a monitored page's revisions of a month."""
        index = month.months_since(self.world.first) + 1
        if page_id % 5 == 1 and index % 6 == 5:
            return []
        story = self.world.story(month, "wikipedia_monitored", page_id)
        last = month.end - _SECOND if page_id % 3 == 0 else month.end - (1 + page_id % 9) * _DAY
        frame = _MONITORED[self.language].replace("TOPIC", story.topic.capitalize())
        texts = [(last, frame.replace("TEXT", "\n\n".join(story.paragraphs)))]
        if page_id % 2:
            texts.insert(0, (month.start, frame.replace("TEXT", story.paragraphs[0])))
        first = page_id * _REVISIONS_A_PAGE + index * 2
        return [
            Revision(first + number, timestamp, text, is_minor=number < len(texts) - 1)
            for number, (timestamp, text) in enumerate(texts)
        ]


def revisions_of(page_id: int, texts: list[tuple[dt.datetime, str | None]]) -> tuple[Revision, ...]:
    """Return a page's revisions from their times and texts, oldest first."""
    return tuple(
        Revision(page_id * _REVISIONS_A_PAGE + number, timestamp, text)
        for number, (timestamp, text) in enumerate(texts)
    )


def _odd_text(oddity: str, story: Story, article: str) -> str | None:
    """Return the text of an odd page, or else the article."""
    texts = {
        "redirect": f"#REDIRECT [[{story.title}]]\n\n{{{{R from move}}}}",
        "disambiguation": f"'''{story.title}''' may refer to:\n* [[A]]\n* [[B]]\n{{{{disambig}}}}",
        "short": "{{stub}}\nToo short.",
        "suppressed": None,
    }
    return texts.get(oddity, article)
