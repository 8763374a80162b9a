"""The same world, told in German: the sites of other languages report on it."""

from __future__ import annotations

import random

from simulator.world import World

_OPENINGS = {
    "science": "{a} berichtete über eine neue Messung in {b}, und das Team von {c} bestätigte sie.",
    "sport": "{a} gewann das Endspiel in {b} nach einem langen Spiel gegen {c}.",
    "politics": "Die Versammlung von {b} wählte {a} zum Vorsitz, mit {c} als Stellvertretung.",
    "culture": "{a} eröffnete in {b} eine Ausstellung, die von {c} gestaltet wurde.",
    "nature": "Eine Zählung bei {b} ergab mehr Vögel als früher, schrieben {a} und {c}.",
    "business": "{a} kaufte die Werkstatt von {c} in {b} für eine nicht genannte Summe.",
}
_MIDDLES = (
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


class GermanWorld(World):
    """A world whose stories are in German; names, topics and lengths are those of the world."""

    @classmethod
    def of(cls, world: World) -> GermanWorld:
        """Return the world that another one is, in German."""
        return cls(world.seed, world.first, world.last, world.stories_per_month)

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
