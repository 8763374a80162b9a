"""Forecasting questions on events of the simulated world, with their answers.

NUM_QUESTIONS questions are resolved in every month. Every third question has three to five options;
all others are yes/no questions. The questions with the numbers in VOID are void: the sites cancel
them. The questions with the numbers in OLD were opened years before their resolution, the other
questions within two months before it. The first question is resolved in the month's first second,
and the last in its last second. In the world's last month, NUM_OPEN more questions are opened, and
stay open.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

from core.month import Month
from simulator.world import TOPICS, World

NUM_QUESTIONS = 12  # number of questions resolved per month, including void questions
NUM_OPEN = 2  # number of questions opened in the world's last month that stay open
VOID = frozenset({3, 8})  # numbers of void questions within each month
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
    """A forecasting question, with its answer if it has one."""

    id: str  # digits; unique in the world, and equal on all sites
    title: str
    background: str  # background information: several paragraphs, plain text
    criteria: str  # conditions under which each option is right
    options: tuple[str, ...]  # ``YES_NO``, or three to five exclusive options
    answer_index: int | None  # index of the true option; None if void or open
    opened: dt.datetime  # start of forecasting, in UTC and whole seconds
    closed: dt.datetime  # end of forecasting (planned end, if open); not after ``resolved``
    # Time at which the site set the answer or declared the question void; None if open.
    resolved: dt.datetime | None
    tags: tuple[str, ...]  # categories, as the sites spell them
    crowd: tuple[float, ...]  # the forecasters' last probability of each option; sum 1
    is_void: bool  # True if cancelled, annulled, or resolved to a percentage

    @property
    def is_binary(self) -> bool:
        """True for a yes/no question."""
        return self.options == YES_NO


def questions(world: World, site: str) -> list[SimulatedQuestion]:
    """Return all questions of a site, sorted by opening time."""
    found = [
        _question(world, site, month, number)
        for month in world.months
        for number in range(NUM_QUESTIONS + (NUM_OPEN if month == world.last else 0))
    ]
    return sorted(found, key=lambda question: (question.opened, question.id))


def _question(world: World, site: str, month: Month, number: int) -> SimulatedQuestion:
    """Return question ``number`` of a month: yes-or-no or choices, resolved, void or open."""
    rng = world.generator("question", site, month, number)
    names = world.names(month)
    who, where, other, *others = rng.sample(names, len(names))
    story = world.story(month, f"{site}/questions", number)
    is_open = number >= NUM_QUESTIONS
    opened, closed, resolved = _dates(rng, month, number)
    options: tuple[str, ...] = YES_NO
    title = f"Will {who} be chosen in {where} before {closed:%d %B %Y}?"
    if number % 3 == 2:
        options = (who, other, *others[: rng.randint(1, 3)])
        title = f"Who will be chosen in {where} before {closed:%d %B %Y}: {who} or {other}?"
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
    """Return when a question opens, closes and is resolved; the last one at the month's end."""
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
    """Return a probability per option, in steps of 0.01; it is usually highest for ``answer``."""
    weights = [
        rng.random() + 0.1 + (0.6 if index == answer else 0.0) for index in range(num_options)
    ]
    percents = [max(1, int(100 * weight / sum(weights))) for weight in weights]
    percents[answer] += 100 - sum(percents)
    return tuple(percent / 100 for percent in percents)
