"""A deterministic generator of the content of all simulated sites.

Every month has new names (people, places, products), which other months do not use, except by
chance. All other properties are constant: the proportions of topics, the sentence patterns, and the
distributions of lengths and letters. So each month's text is equally hard to predict for a model
not trained on it.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import Literal

from core.month import Month, month_range

TOPICS = ("science", "sport", "politics", "culture", "nature", "business")
NAMES_PER_MONTH = 12

# Each inner list has strings of one length, so the n-th name of every month has the same length.
_ONSETS = (list("bcdfghjklmnprstvwz"), ["br", "ch", "dr", "gr", "kl", "pr", "qu", "sh", "st", "tr"])
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
_GERMAN_OPENINGS = {
    "science": "{a} berichtete über eine neue Messung in {b}, und das Team von {c} bestätigte sie.",
    "sport": "{a} gewann das Endspiel in {b} nach einem langen Spiel gegen {c}.",
    "politics": "Die Versammlung von {b} wählte {a} zum Vorsitz, mit {c} als Stellvertretung.",
    "culture": "{a} eröffnete in {b} eine Ausstellung, die von {c} gestaltet wurde.",
    "nature": "Eine Zählung bei {b} ergab mehr Vögel als früher, schrieben {a} und {c}.",
    "business": "{a} kaufte die Werkstatt von {c} in {b} für eine nicht genannte Summe.",
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
_GERMAN_MIDDLES = (
    "Beobachter in {b} sagten, dass {a} sich seit dem Frühjahr darauf vorbereitet habe.",
    "Nach den Worten von {c} hatte niemand die Entscheidung von {a} erwartet.",
    "Der Rat von {b} dankte {a} in einer kurzen Erklärung.",
    "In einem Gespräch sagte {a}, das meiste Verdienst gebühre {c}.",
    "Ein zweiter Bericht aus {b} nannte {c} als wichtigsten Grund.",
    "Manche bezweifelten die Darstellung von {c}, aber {a} antwortete ihnen nicht.",
    "Die Straße nach {b} war wegen der Menge um {a} zwei Tage lang gesperrt.",
    "Später in dieser Woche traf {a} noch einmal {c}, diesmal unter vier Augen.",
    "Das Archiv von {b} bewahrt die Briefe auf, die {a} an {c} schrieb.",
    "Von weit her kamen Gäste nach {b}, und {a} begrüßte sie persönlich.",
    "So etwas war in {b} lange nicht geschehen, sagte {c}.",
    "Der Plan, den {a} mit {c} gefasst hatte, wurde im Wortlaut veröffentlicht.",
)
_SENTENCES = {"en": (_OPENINGS, _MIDDLES), "de": (_GERMAN_OPENINGS, _GERMAN_MIDDLES)}
_CODE_VERBS = ("load", "merge", "count", "check", "index", "store", "filter", "render")


@dataclass(frozen=True)
class Story:
    """A text about an event; sites present the text as an article, a paper or a question."""

    key: str  # unique in the world, such as ``2023-04/wikipedia/0007``
    month: Month  # month of the event
    topic: str  # one of TOPICS
    title: str  # headline that contains a name of the month
    paragraphs: tuple[str, ...]  # plain text without markup


class World:
    """The source of all simulated text, which depends only on the seed and the month."""

    def __init__(
        self,
        seed: int,
        first: Month,
        last: Month,  # included
        stories_per_month: int = 24,  # number of stories per site and month
        language: Literal["en", "de"] = "en",
    ) -> None:
        self.seed = seed
        self.first = first
        self.last = last
        self.stories_per_month = stories_per_month
        self.language = language

    def in_german(self) -> World:
        """Return this world with German sentences, but the same names, topics and lengths."""
        return World(self.seed, self.first, self.last, self.stories_per_month, "de")

    @property
    def months(self) -> list[Month]:
        """All months of the world, in order."""
        return list(month_range(self.first, self.last))

    def generator(self, *key: object) -> random.Random:
        """Return a random generator that is seeded with the world's seed and the key."""
        text = "/".join(map(str, (self.seed, *key)))
        return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]))  # noqa: S311

    def names(self, month: Month) -> list[str]:
        """Return the NAMES_PER_MONTH random names of a month; they differ from month to month."""
        rng = self.generator("names", month)
        return [_name(rng, number) for number in range(NAMES_PER_MONTH)]

    def stories(self, month: Month, site: str) -> list[Story]:
        """Return a site's stories of a month; an empty list outside the world's months."""
        if not self.first <= month <= self.last:
            return []
        return [self.story(month, site, number) for number in range(self.stories_per_month)]

    def story(self, month: Month, site: str, number: int) -> Story:
        """Return one story; its topic and length depend only on ``number``."""
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
        """Return five sentences with names filled in; the first may be about the topic."""
        openings, middles = _SENTENCES[self.language]
        patterns = rng.sample(middles, 5)
        if is_first:
            patterns[0] = openings[topic]
        filled = []
        for pattern in patterns:
            a, b, c = rng.sample(names, 3)
            filled.append(pattern.format(a=a, b=b, c=c))
        return filled

    def module(self, month: Month, site: str, number: int) -> str:
        """Return the code of a Python module whose identifiers are names of the month."""
        rng = self.generator("module", month, site, number)
        names = [name.lower() for name in self.names(month)]
        lines = [f'"""Tools for {rng.choice(names).title()} records."""', ""]
        for _ in range(3 + number % 3):
            verb = rng.choice(_CODE_VERBS)
            (a, b, c) = rng.sample(names, 3)
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
    """Draw a random name; its length depends only on its number within the month."""
    parts = []
    for syllable in range(_SYLLABLES):
        parts.append(rng.choice(_ONSETS[(number + syllable) % 3 == 0]))
        parts.append(rng.choice(_VOWELS[(number + 2 * syllable) % 4 == 0]))
        parts.append(rng.choice(_CODAS[(number // 2 + syllable) % 2]))
    return "".join(parts).capitalize()
