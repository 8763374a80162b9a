"""The pages of the simulated Wikinews: the world's stories, each dated to a day of the month.

Every month also has one page of each kind in ODDITIES (pages that crawlers must drop).
"""

from __future__ import annotations

import datetime as dt
import re

from core.month import Month
from simulator.wiki import FIRST_NEW_PAGE, PAGES_A_MONTH, Page, Wiki, revisions_of
from simulator.world import Story, World

ODDITIES = ("redirect", "unpublished", "late", "suppressed", "disambiguation")
_SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)
_SOURCES = """== Sources ==
*{{source|url=https://example.org/a
|title=A report
|author=The desk
|pub=Example
|date=January 1, 2020}}"""


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
        story, day = self.world.story(month, "wikinews", number), self._day(page_id)
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
