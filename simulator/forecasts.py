"""Forecasting questions on what happens in the world, and how they came out.

Every month the same mix: of NUM_QUESTIONS that are resolved in it, every third has three to five
options, and the others are yes or no; VOID of them are never answered; OLD were opened years before
they were resolved, the others within two months of it. The first is resolved in the month's first
second, the last in its last. Besides, some are opened in the world's last month and still open.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

from core.month import Month
from simulator.world import TOPICS, World

NUM_QUESTIONS = 12  # resolved in a month, void ones included
NUM_OPEN = 2  # in the world's last month
VOID = frozenset({3, 8})  # by number within the month
OLD = frozenset({4, 7})
YES_NO = ("Yes", "No")
_DAY = dt.timedelta(days=1)
_TAGS = {
    "science": ("Technology", "Health"),
    "sport": ("Sports", "Olympics"),
    "politics": ("Non-US Politics", "Elections and Referenda"),
    "culture": ("Entertainment", "Society"),
    "nature": ("Environment", "Open"),
    "business": ("Business", "Economic Indicators"),
}


@dataclass(frozen=True)
class SimulatedQuestion:
    """A question, and its answer where it has one.

    Attributes:
        id: a number, unique in the world; the same on every site.
        background: what a forecaster should know; several paragraphs, plain text.
        criteria: when it resolves to what.
        options: ``YES_NO``, or three to five that exclude each other.
        answer_index: which came true; None of a void or an open one.
        opened: when forecasts began; whole seconds in UTC, as all moments here.
        closed: when they ended (or are to end); not after ``resolved``.
        resolved: when the site set the answer, or declared it void; None of an open one.
        tags: as sites write them.
        crowd: the last forecast before ``closed``, one probability an option, of sum 1.
        is_void: cancelled, annulled, or answered by a share.
    """

    id: str
    title: str
    background: str
    criteria: str
    options: tuple[str, ...]
    answer_index: int | None
    opened: dt.datetime
    closed: dt.datetime
    resolved: dt.datetime | None
    tags: tuple[str, ...]
    crowd: tuple[float, ...]
    is_void: bool

    @property
    def is_binary(self) -> bool:
        """Whether it is answered by yes or no."""
        return self.options == YES_NO


def questions(world: World, site: str) -> list[SimulatedQuestion]:
    """Return all questions of a site, by when they were opened.

    Args:
        world: whose months they are resolved in; some were opened before its first.
        site: sites ask other questions.
    """
    found = [
        _question(world, site, month, number)
        for month in world.months
        for number in range(NUM_QUESTIONS + (NUM_OPEN if month == world.last else 0))
    ]
    return sorted(found, key=lambda question: (question.opened, question.id))


def _question(world: World, site: str, month: Month, number: int) -> SimulatedQuestion:
    rng = world.generator("question", site, month, number)
    names = world.names(month)
    who, where, rival, *others = rng.sample(names, len(names))
    story = world.story(month, f"{site}/questions", number)
    is_open = number >= NUM_QUESTIONS
    opened, closed, resolved = _dates(rng, month, number)
    options: tuple[str, ...] = YES_NO
    title = f"Will {who} be chosen in {where} before {closed:%d %B %Y}?"
    if number % 3 == 2:
        options = (who, rival, *others[: rng.randint(1, 3)])
        title = f"Who will be chosen in {where} before {closed:%d %B %Y}: {who} or {rival}?"
    is_void = number in VOID
    answer = rng.randrange(len(options))
    return SimulatedQuestion(
        id=f"{month.start:%y%m}{number:03d}",
        title=title,
        background="\n\n".join(story.paragraphs),
        criteria=f"The council of {where} must confirm the choice of {who} in public.",
        options=options,
        answer_index=None if is_void or is_open else answer,
        opened=opened,
        closed=closed,
        resolved=None if is_open else resolved,
        tags=_TAGS[TOPICS[number % len(TOPICS)]],
        crowd=_crowd(rng, len(options), answer),
        is_void=is_void,
    )


def _dates(
    rng: random.Random, month: Month, number: int
) -> tuple[dt.datetime, dt.datetime, dt.datetime]:
    """Return when a question opens, closes and is resolved."""
    if number >= NUM_QUESTIONS:
        opened = month.start + (number - NUM_QUESTIONS + 1) * 3 * _DAY
        return opened, opened + 500 * _DAY, opened + 501 * _DAY
    step = (month.end - month.start) / NUM_QUESTIONS
    resolved = (month.start + number * step).replace(microsecond=0)
    if number == NUM_QUESTIONS - 1:
        resolved = month.end - dt.timedelta(seconds=1)
    closed = resolved - dt.timedelta(seconds=rng.randrange(0, 3 * 86_400))
    open_days = rng.randrange(900, 1_500) if number in OLD else rng.randrange(5, 55)
    opened = closed - open_days * _DAY - dt.timedelta(seconds=rng.randrange(86_400))
    return opened, closed, resolved


def _crowd(rng: random.Random, num_options: int, answer: int) -> tuple[float, ...]:
    """Return whole percents that add up to one, the right answer a little ahead."""
    weights = [
        rng.random() + 0.1 + (0.6 if index == answer else 0.0) for index in range(num_options)
    ]
    percents = [max(1, int(100 * weight / sum(weights))) for weight in weights]
    percents[answer] += 100 - sum(percents)
    return tuple(percent / 100 for percent in percents)
