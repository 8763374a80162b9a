"""What the simulated news sites publish: the world's stories, and the oddities of such sites.

The first article of a month appears in its first second, the last in its last; some are changed
within the month. Beside them stand, every month, the articles that a site names as its oddities.
"""

from __future__ import annotations

import datetime as dt
import functools
import html
import re
from dataclasses import dataclass

from core.month import Month, month_range
from simulator.server import Request, Response
from simulator.world import Story, World

CHANGED_LATER = dt.timedelta(days=70)  # after an article appeared, where its oddity says so
SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Article:
    """One article.

    Attributes:
        number: within its month; the ordinary ones come first.
        published: when it first appeared.
        changed: when its text was last changed; ``published`` where it never was.
        oddity: of the site's list, or empty for an ordinary article.
    """

    number: int
    story: Story
    published: dt.datetime
    changed: dt.datetime
    oddity: str = ""

    @property
    def title(self) -> str:
        """With a character that HTML escapes."""
        return f"{self.story.title}: what we know & what’s next"

    @property
    def slug(self) -> str:
        """Unique on its site."""
        words = re.sub("[^a-z0-9]+", "-", self.story.title.lower()).strip("-")
        return f"{words}-{self.oddity}" if self.oddity else words

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """Tag and text of what a reader of the page reads, in order."""
        blocks = [("p", paragraph) for paragraph in self.story.paragraphs]
        if len(blocks) > 2:
            blocks.insert(-1, ("h2", "Background"))
        return blocks

    @property
    def text(self) -> str:
        """What a crawler should find."""
        return "\n\n".join(text for _, text in self.blocks)


class Newsroom:
    """All articles of a site, made from the world when asked for.

    Args:
        site: names the stories; sites report on other events.
        oddities: one article each every month.
    """

    def __init__(self, world: World, site: str, oddities: tuple[str, ...]) -> None:
        self.world, self._site, self._oddities = world, site, oddities

    @functools.cached_property
    def articles(self) -> list[Article]:
        """All articles, in the order they appeared."""
        months = month_range(self.world.first, self.world.last)
        found = [article for month in months for article in self.of_month(month)]
        return sorted(found, key=lambda article: (article.published, article.number))

    def of_month(self, month: Month) -> list[Article]:
        """Return the articles that first appeared in a month."""
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


def page(title: str, body: str, head: str = "", language: str = "en") -> Response:
    """Return an HTML page for people; ``body`` is HTML, ``title`` is text."""
    whole = (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>{head}</head>\n<body>{body}</body></html>\n"
    )
    return Response(200, {"Content-Type": "text/html; charset=utf-8"}, whole.encode())


def link_list(links: list[tuple[str, str]]) -> str:
    """Return an HTML list of links, given as address and text."""
    items = (
        f'<li><a href="{html.escape(url)}">{html.escape(text)}</a></li>' for url, text in links
    )
    return f"<ul>{''.join(items)}</ul>"


def integer(request: Request, name: str, default: int) -> int | None:
    """Return a query parameter that counts something; None where it is no whole number."""
    value = request.arg(name, str(default))
    return int(value) if value.isascii() and value.isdecimal() else None
