"""The articles of the simulated news sites: the world's stories, and special cases.

The first article of a month is published in the first second of the month, and the last article in
the last second. Some articles are changed within the month. Every month also has one article for
each of a site's special cases (oddities), such as a later edit.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from dataclasses import dataclass

from core.month import Month, month_range
from simulator.server import Request, WorldSite
from simulator.world import Story, World

CHANGED_LATER = dt.timedelta(days=70)  # time from publication to change, if ``oddity`` is "edited…"
SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Article:
    """One article."""

    number: int  # number within the month; special cases come last
    story: Story
    published: dt.datetime  # first publication
    changed: dt.datetime  # last change of the text; ``published`` if unchanged
    oddity: str = ""  # name of the special case; empty for an ordinary article

    @property
    def title(self) -> str:
        """The title, which contains ``&``, so that HTML has to escape it."""
        return f"{self.story.title}: what we know & what’s next"

    @property
    def slug(self) -> str:
        """The last part of the URL; unique within the site."""
        words = re.sub("[^a-z0-9]+", "-", self.story.title.lower()).strip("-")
        return f"{words}-{self.oddity}" if self.oddity else words

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """Pairs of HTML tag and text for each visible block of the page, in order."""
        blocks = [("p", paragraph) for paragraph in self.story.paragraphs]
        if len(blocks) > 2:
            blocks.insert(-1, ("h2", "Background"))
        return blocks

    @property
    def text(self) -> str:
        """The text that a crawler should extract."""
        return "\n\n".join(text for _, text in self.blocks)


class Newsroom:
    """All articles of a site, created from the world on demand."""

    def __init__(self, world: World, site: str, oddities: tuple[str, ...]) -> None:
        self.world = world
        self._site = site
        self._oddities = oddities

    @functools.cached_property
    def articles(self) -> list[Article]:
        """All articles, sorted by publication time."""
        months = month_range(self.world.first, self.world.last)
        found = [article for month in months for article in self.of_month(month)]
        return sorted(found, key=lambda article: (article.published, article.number))

    def of_month(self, month: Month) -> list[Article]:
        """Return the articles first published in a month."""
        count = self.world.stories_per_month
        span = (month.end - SECOND - month.start) / max(count - 1, 1)
        found = []
        for number in range(count):
            story = self.world.story(month, self._site, number)
            published = (month.start + number * span).replace(microsecond=0)
            is_corrected = number % 4 == 1 and published + _DAY < month.end
            changed = published + _DAY if is_corrected else published
            found.append(Article(number, story, published, changed))
        for number, oddity in enumerate(self._oddities, count):
            story = self.world.story(month, self._site, number)
            published = month.start + (number - count + 1) * _DAY
            changed = published + CHANGED_LATER if oddity.startswith("edited") else published
            found.append(Article(number, story, published, changed, oddity))
        return found


class NewsSite(WorldSite):
    """Base class of a site with articles; ``stories`` is the name of its stories in the world."""

    stories: str
    oddities: tuple[str, ...]

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.newsroom = Newsroom(world, self.stories, self.oddities)


def integer(request: Request, name: str, default: int) -> int | None:
    """Return a query parameter as a non-negative integer, or None for other values."""
    value = request.arg(name, str(default))
    return int(value) if value.isascii() and value.isdecimal() else None
