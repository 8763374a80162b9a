"""The pages of the simulated wiki, with their histories, made from the world.

New pages (``wikipedia_new``): the world's stories, each with a stub, a full revision and, for every
second page, a revision of a later month. Beside them, every month, the pages in ODDITIES.

Monitored pages (``wikipedia_monitored``): TITLES, in both languages; a few are reached through a
redirect alone. Each has a lead that never changes and a section about the month's story. Everything
but the title follows from the page id, so that the wiki gives the same answers after a restart.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass, replace

from core.month import Month
from simulator.wiki_articles import ARTICLES, MONITORED
from simulator.world import Story, World

# The well-known subjects that this wiki has a page of: English title, and the German one.
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

FIRST_NEW_PAGE = 1_000_000  # smaller ids are monitored pages
_PAGES_A_MONTH = 1_000
_REVISIONS_A_PAGE = 10_000
_SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Revision:
    """One version of a page; ``wikitext`` is None where it was suppressed."""

    revision_id: int
    timestamp: dt.datetime
    wikitext: str | None
    is_minor: bool = False


@dataclass(frozen=True)
class Page:
    """A page with its history, oldest revision first.

    Attributes:
        oddity: one of ODDITIES, or empty for an ordinary article.
    """

    page_id: int
    title: str
    revisions: tuple[Revision, ...]
    oddity: str = ""

    @property
    def namespace(self) -> int:
        """118 is the namespace Draft."""
        return 118 if self.oddity == "moved" else 0


class Wiki:
    """All pages of the wiki, made from the world when asked for.

    Args:
        world: tells its stories in the wiki's language.
        language: en or de.
    """

    def __init__(self, world: World, language: str = "en") -> None:
        self.world, self.language = world, language
        self._titles: dict[int, str] = {}  # of monitored pages asked for so far
        self._made: dict[int, Page] = {}  # making a page takes longer than answering for it

    def page(self, page_id: int) -> Page | None:
        """Return a page, whether or not it was deleted since; None where there never was one."""
        if page_id < 1:
            return None
        if page_id < FIRST_NEW_PAGE:
            return self._monitored(page_id)
        offset, number = divmod(page_id - FIRST_NEW_PAGE, _PAGES_A_MONTH)
        month = self.world.first + offset
        total = self.world.stories_per_month + len(ODDITIES)
        return self._created(month, number) if month <= self.world.last and number < total else None

    def page_of_revision(self, revision_id: int) -> Page | None:
        """Return the page that a revision is or would be of."""
        return self.page(revision_id // _REVISIONS_A_PAGE)

    def pages_created(self, month: Month) -> list[Page]:
        """Return the new pages of a month, oddities last; empty outside the world's months."""
        if not self.world.first <= month <= self.world.last:
            return []
        total = self.world.stories_per_month + len(ODDITIES)
        return [self._created(month, number) for number in range(total)]

    def find(self, title: str) -> tuple[Page | None, str]:
        """Return the page of a title, and the title it has (another where the first redirects)."""
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
        months = [month - number for number in range(4)]  # the last edit is two months later
        return [*self.subjects(), *(page for each in months for page in self.pages_created(each))]

    def find_created(self, title: str) -> Page | None:
        """Return a new page by its title."""
        pages = (page for month in self.world.months for page in self.pages_created(month))
        return next((page for page in pages if page.title == title), None)

    def members(self, category: str) -> list[Page]:
        """Return the pages of a category; this wiki keeps none."""
        return []

    def title_in(self, language: str, title: str) -> str | None:
        """Return what a monitored page is called in another language."""
        base = title.removesuffix(" (topic)")
        return TITLES.get(base) if (self.language, language) == ("en", "de") else None

    def _article(self, story: Story, paragraphs: tuple[str, ...] = ()) -> str:
        return ARTICLES[self.language](story, self.world, paragraphs)

    def _created(self, month: Month, number: int) -> Page:
        page_id = FIRST_NEW_PAGE + month.months_since(self.world.first) * _PAGES_A_MONTH + number
        if page_id in self._made:
            return self._made[page_id]
        rng = self.world.generator("wikipedia_new", month, number)
        story = self.world.story(month, "wikipedia_new", number)
        length_s = int((month.end - month.start).total_seconds())
        created = month.start + rng.randrange(length_s) * _SECOND
        if number == 0:
            created = month.start
        elif number == 1:
            created = month.end - _SECOND
        oddity = ODDITIES[max(0, number - self.world.stories_per_month)]
        oddity = oddity if number >= self.world.stories_per_month else ""
        texts: list[tuple[dt.datetime, str | None]]
        if oddity:
            texts = [(created, _odd_text(oddity, story, self._article(story)))]
        else:
            texts = [
                (created, self._article(story, story.paragraphs[:1])),
                (min(created + _DAY, month.end - _SECOND), self._article(story)),
            ]
        if number % 2 == 0 and not oddity:
            later = self.world.story(month + 2, "wikipedia_new", number)
            texts.append((later.month.start + number * _DAY / 2, self._article(later)))
        title = f"Draft:{story.title}" if oddity == "moved" else story.title
        page = Page(page_id, title, _revisions(page_id, texts), oddity)
        self._made[page_id] = page
        return page

    def _monitored(self, page_id: int) -> Page:
        title = self._titles.get(page_id, f"Page {page_id}")
        if page_id not in self._made:
            months = self.world.months
            is_late = page_id % 8 == 0
            edited = months[len(months) // 2 :] if is_late else [months[0] - 1, *months]
            history = [revision for month in edited for revision in self._month_of(page_id, month)]
            self._made[page_id] = Page(page_id, title, tuple(history))
        return replace(self._made[page_id], title=title)

    def _month_of(self, page_id: int, month: Month) -> list[Revision]:
        """The edits of a month: the first in its first second, the last gives all of its story."""
        index = month.months_since(self.world.first) + 1
        if page_id % 5 == 1 and index % 6 == 5:
            return []
        story = self.world.story(month, "wikipedia_monitored", page_id)
        last = month.end - _SECOND if page_id % 3 == 0 else month.end - (1 + page_id % 9) * _DAY
        tell = MONITORED[self.language]
        texts = [(last, tell(story, story.paragraphs))]
        if page_id % 2:
            texts.insert(0, (month.start, tell(story, story.paragraphs[:1])))
        first = page_id * _REVISIONS_A_PAGE + index * 2
        return [
            Revision(first + number, timestamp, text, is_minor=number < len(texts) - 1)
            for number, (timestamp, text) in enumerate(texts)
        ]


def _revisions(page_id: int, texts: list[tuple[dt.datetime, str | None]]) -> tuple[Revision, ...]:
    return tuple(
        Revision(page_id * _REVISIONS_A_PAGE + number, timestamp, text)
        for number, (timestamp, text) in enumerate(texts)
    )


def _odd_text(oddity: str, story: Story, article: str) -> str | None:
    texts = {
        "redirect": f"#REDIRECT [[{story.title}]]\n\n{{{{R from move}}}}",
        "disambiguation": f"'''{story.title}''' may refer to:\n* [[A]]\n* [[B]]\n{{{{disambig}}}}",
        "short": "{{stub}}\nToo short.",
        "suppressed": None,
    }
    return texts.get(oddity, article)
