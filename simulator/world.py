"""A deterministic world that the simulated sites report on.

Every month brings its own names (people, places, products) that were never seen before and are
hardly mentioned afterwards. All else is stationary: the same topics in the same proportions, the
same sentence patterns, the same distribution of lengths and of letters. So the text of one month is
as hard to predict as that of any other, except for a model that has read it.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from core.month import Month, month_range

TOPICS = ("science", "sport", "politics", "culture", "nature", "business")
NAMES_PER_MONTH = 12

# By length, so that the n-th name of every month has the same number of letters.
_ONSETS = (
    list("bcdfghjklmnprstvwz"),
    ["br", "ch", "dr", "gr", "kl", "pr", "qu", "sh", "st", "tr"],
)
_VOWELS = (list("aeiou"), ["ai", "ea", "ie", "oa", "ou"])
_CODAS = ([""], list("lmnrstx"))
_SYLLABLES = 3

_OPENINGS = {
    "science": "{a} reported a new measurement at {b}, and the team around {c} confirmed it.",
    "sport": "{a} won the final at {b} after a long match against {c}.",
    "politics": "The assembly of {b} chose {a} as its speaker, with {c} as deputy.",
    "culture": "{a} opened an exhibition in {b} that was designed by {c}.",
    "nature": "A survey near {b} found more birds than before, wrote {a} and {c}.",
    "business": "{a} bought the workshop of {c} in {b} for an undisclosed sum.",
}
_MIDDLES = (
    "Observers in {b} said that {a} had prepared for this since the spring.",
    "According to {c}, the decision of {a} was expected by nobody.",
    "The council of {b} thanked {a} in a short statement.",
    "In an interview, {a} said that {c} deserved most of the credit.",
    "A second report from {b} named {c} as the main reason.",
    "Some doubted the account of {c}, but {a} did not answer them.",
    "The road to {b} was closed for two days because of the crowd around {a}.",
    "Later that week {a} met {c} again, this time in private.",
    "The archive of {b} keeps the letters that {a} wrote to {c}.",
    "Visitors came from far to see {b}, and {a} welcomed them in person.",
    "Nothing like this had happened in {b} for a long time, said {c}.",
    "The plan that {a} made with {c} was published in full.",
)
_CODE_VERBS = ("load", "merge", "count", "check", "index", "store", "filter", "render")


@dataclass(frozen=True)
class Story:
    """Something that happened: the raw material of an article, a paper or a repository's file.

    Attributes:
        key: unique in the world, such as ``2023-04/wikipedia/0007``.
        month: when.
        topic: one of TOPICS.
        title: contains a name of the month.
        paragraphs: plain sentences, no markup; (num_paragraphs,).
    """

    key: str
    month: Month
    topic: str
    title: str
    paragraphs: tuple[str, ...]


class World:
    """The source of all simulated text; a pure function of seed and month.

    Args:
        seed: worlds of different seeds share the sentence patterns, not the names.
        first: first month in which something happens.
        last: last month (included).
        stories_per_month: how many articles, papers or files each site publishes a month.
    """

    def __init__(self, seed: int, first: Month, last: Month, stories_per_month: int = 24) -> None:
        self.seed, self.first, self.last = seed, first, last
        self.stories_per_month = stories_per_month

    @property
    def months(self) -> list[Month]:
        """All months of the world, in order."""
        return list(month_range(self.first, self.last))

    def generator(self, *key: object) -> random.Random:
        """Return a generator that depends on the world's seed and the key alone."""
        text = "/".join(map(str, (self.seed, *key)))
        return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]))  # noqa: S311

    def names(self, month: Month) -> list[str]:
        """Return the month's own names; (NAMES_PER_MONTH,), none shared with another month."""
        rng = self.generator("names", month)
        return [_name(rng, number) for number in range(NAMES_PER_MONTH)]

    def stories(self, month: Month, site: str) -> list[Story]:
        """Return what a site publishes in a month: the same mix of topics and lengths each month.

        Args:
            month: any; empty outside the world's months.
            site: sites report on the same names, but on other events.
        """
        if not self.first <= month <= self.last:
            return []
        return [self.story(month, site, number) for number in range(self.stories_per_month)]

    def story(self, month: Month, site: str, number: int) -> Story:
        """Return one story; topic and length depend on ``number`` alone (see the module's text)."""
        rng = self.generator("story", month, site, number)
        topic = TOPICS[number % len(TOPICS)]
        names = self.names(month)
        paragraphs = [
            " ".join(self._sentences(rng, topic, names, is_first=index == 0))
            for index in range(2 + number // len(TOPICS) % 3)
        ]
        title = f"{rng.choice(names)} and {rng.choice(names)} {number}"
        return Story(f"{month}/{site}/{number:04d}", month, topic, title, tuple(paragraphs))

    def _sentences(
        self, rng: random.Random, topic: str, names: list[str], is_first: bool
    ) -> list[str]:
        patterns = rng.sample(_MIDDLES, 5)
        if is_first:
            patterns[0] = _OPENINGS[topic]
        filled = []
        for pattern in patterns:
            a, b, c = rng.sample(names, 3)
            filled.append(pattern.format(a=a, b=b, c=c))
        return filled

    def module(self, month: Month, site: str, number: int) -> str:
        """Return the source of a Python module whose identifiers are names of the month."""
        rng = self.generator("module", month, site, number)
        names = [name.lower() for name in self.names(month)]
        lines = [f'"""Tools for {rng.choice(names).title()} records."""', ""]
        for _ in range(3 + number % 3):
            verb, (a, b, c) = rng.choice(_CODE_VERBS), rng.sample(names, 3)
            lines += [
                "",
                f"def {verb}_{a}({b}, {c}=None):",
                f'    """Return the {a} of {b}."""',
                f"    if {c} is None:",
                f"        {c} = len({b})",
                f"    {a} = [{b}[i] for i in range({c}) if {b}[i] != {rng.randint(0, 9)}]",
                f"    return sorted({a})",
                "",
            ]
        return "\n".join(lines) + "\n"


def _name(rng: random.Random, number: int) -> str:
    """Draw a name whose length depends on its number in the month alone."""
    parts = []
    for syllable in range(_SYLLABLES):
        parts.append(rng.choice(_ONSETS[(number + syllable) % 3 == 0]))
        parts.append(rng.choice(_VOWELS[(number + 2 * syllable) % 4 == 0]))
        parts.append(rng.choice(_CODAS[(number // 2 + syllable) % 2]))
    return "".join(parts).capitalize()
