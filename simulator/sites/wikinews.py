"""The simulated English Wikinews; its pages are made in ``simulator/wikinews.py``."""

from __future__ import annotations

from simulator.mediawiki import WikiSite
from simulator.wikinews import NewsWiki
from simulator.world import World


class Site(WikiSite):
    """The simulated Wikinews."""

    keys: tuple[str, ...] = ("wikinews",)

    def __init__(self, world: World) -> None:
        super().__init__(NewsWiki(world))
