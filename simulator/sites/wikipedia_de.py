"""The simulated German Wikipedia; its pages are made in ``simulator/wiki.py``."""

from __future__ import annotations

from simulator.german import GermanWorld
from simulator.mediawiki import WikiSite
from simulator.wiki import Wiki
from simulator.world import World


class Site(WikiSite):
    """The simulated German Wikipedia."""

    keys: tuple[str, ...] = ("wikipedia_de",)

    def __init__(self, world: World) -> None:
        super().__init__(Wiki(GermanWorld.of(world), "de"))
