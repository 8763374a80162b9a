"""The pages of the simulated wiki, with their histories, made from the world.

New pages (``wikipedia_new``): the world's stories, each with a stub, a full revision and, for every
second page, a revision of a later month. Beside them, every month, the pages in ODDITIES.

Monitored pages (``wikipedia_monitored``): every sixth title, by its hash, is a page, so that any
list of titles has some; the others are missing. Each has a lead that never changes and a section
about the month's story. Everything but the title follows from the page id, so that the wiki gives
the same answers after a restart.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, replace

from core.month import Month
from simulator.world import Story, World

ODDITIES = ("redirect", "disambiguation", "short", "deleted", "suppressed", "moved", "concealed")

_FIRST_NEW_PAGE = 1_000_000  # smaller ids are monitored pages
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
    """All pages of the wiki, made from the world when asked for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._titles: dict[int, str] = {}  # of monitored pages asked for so far
        self._made: dict[int, Page] = {}  # making a page takes longer than answering for it

    def page(self, page_id: int) -> Page | None:
        """Return a page, whether or not it was deleted since; None where there never was one."""
        if page_id < 1:
            return None
        if page_id < _FIRST_NEW_PAGE:
            return self._monitored(page_id)
        offset, number = divmod(page_id - _FIRST_NEW_PAGE, _PAGES_A_MONTH)
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
        value = int.from_bytes(hashlib.sha256(base.encode()).digest()[:8])
        if value % 6:
            return None, title
        target = title if value // 6 % 4 else f"{base} (topic)"
        page_id = 1 + value // 24 % (_FIRST_NEW_PAGE - 1)
        self._titles[page_id] = target
        return self._monitored(page_id), target

    def _created(self, month: Month, number: int) -> Page:
        page_id = _FIRST_NEW_PAGE + month.months_since(self.world.first) * _PAGES_A_MONTH + number
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
            texts = [(created, _odd_text(oddity, story, self.world))]
        else:
            texts = [
                (created, article(story, self.world, story.paragraphs[:1])),
                (min(created + _DAY, month.end - _SECOND), article(story, self.world)),
            ]
        if number % 2 == 0 and not oddity:
            later = self.world.story(month + 2, "wikipedia_new", number)
            texts.append((later.month.start + number * _DAY / 2, article(later, self.world)))
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
        texts = [(last, monitored_article(story, story.paragraphs))]
        if page_id % 2:
            texts.insert(0, (month.start, monitored_article(story, story.paragraphs[:1])))
        return [
            Revision(page_id * _REVISIONS_A_PAGE + index * 2 + number, timestamp, text)
            for number, (timestamp, text) in enumerate(texts)
        ]


def _revisions(page_id: int, texts: list[tuple[dt.datetime, str | None]]) -> tuple[Revision, ...]:
    return tuple(
        Revision(page_id * _REVISIONS_A_PAGE + number, timestamp, text)
        for number, (timestamp, text) in enumerate(texts)
    )


def article(story: Story, world: World, paragraphs: tuple[str, ...] = ()) -> str:
    """Return a story as the wikitext of an article; without its markup it is the paragraphs.

    The last of three or more paragraphs has the heading "Aftermath".
    """
    blocks = [_marked_up(text, story, world) for text in paragraphs or story.paragraphs]
    if len(blocks) > 2:
        blocks[-1] = f"== Aftermath ==\n{blocks[-1]}"
    return "\n\n".join(
        [
            "{{Short description|Recent event}}\n{{Infobox event\n| name = " + story.title,
            "| map = {{Location map|World|label={{nowrap|Here}}}}\n}}",
            "[[File:View.jpg|thumb|upright=1.2|A view, seen from the [[tower]].]]",
            *blocks,
            '{| class="wikitable"\n! Year !! Count\n|-\n| 1 || 2\n|}',
            "== See also ==\n* [[List of events]]\n\n=== Elsewhere ===\n* [[Other lists]]",
            "==References==\n{{Reflist}}\n<references />",
            "== External links ==\n* [https://example.org/ Official site]\n{{Navbox events}}",
            f"[[Category:{story.topic.capitalize()}]]\n[[Category:Events]]",
        ]
    )


def _marked_up(paragraph: str, story: Story, world: World) -> str:
    """Add links, emphasis, comments and footnotes that a reader of the text does not see."""
    names = [name for name in world.names(story.month) if re.search(rf"\b{name}\b", paragraph)]
    first, second, third, *_ = [*names, "-", "-", "-"]
    paragraph = re.sub(rf"\b{first}\b", f"'''[[{first}]]'''", paragraph, count=1)
    paragraph = re.sub(rf"\b{second}\b", f"[[{second} (name)|{second}]]", paragraph, count=1)
    paragraph = re.sub(rf"\b{third}\b", f"<i>{third}</i><!-- check -->", paragraph, count=1)
    note = '.<ref name="a">{{cite web |url=https://example.org/a |title=A [[note]]}}</ref> '
    return paragraph.replace(". ", note, 1) + '<ref name="a" />'


def monitored_article(story: Story, paragraphs: tuple[str, ...]) -> str:
    """Return a monitored page: a lead that is always the same, then what is new this month."""
    return "\n\n".join(
        [
            "{{Infobox subject}}\nThe subject of this article has been '''documented''' for long.",
            "== Developments ==\n" + "\n\n".join(paragraphs),
            "== Notes ==\n{{Notelist}}\n\n== Further reading ==\n* ''A book''",
            f"[[Category:{story.topic.capitalize()}]]",
        ]
    )


def _odd_text(oddity: str, story: Story, world: World) -> str | None:
    texts = {
        "redirect": f"#REDIRECT [[{story.title}]]\n\n{{{{R from move}}}}",
        "disambiguation": f"'''{story.title}''' may refer to:\n* [[A]]\n* [[B]]\n{{{{disambig}}}}",
        "short": "{{stub}}\nToo short.",
        "suppressed": None,
    }
    return texts.get(oddity, article(story, world))
