"""Recordings of the real sites, replayed through the crawlers; one module per site.

The recordings lie in ``../shared/recordings``; its README has origin, licence and expected yield.
A module has ``CASES``. The tests in ``test_recordings.py`` run all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.settings import Settings
from simulator.server import Request, Response, Site, Web, serve_sites


@dataclass(frozen=True)
class Case:
    """A recording, relative to the folder of recordings, and the check of what it yields.

    ``check`` receives the recording's path, and settings whose data root is empty. ``mark`` is
    ``long`` for more than a second of processor time, or ``slow`` for what another case samples.
    """

    path: str
    check: Callable[[Path, Settings], None]
    mark: Literal["", "long", "slow"] = ""


class Replay(Site):
    """A site that answers each request by ``respond``; a path that it lacks is a 404."""

    def __init__(
        self,
        keys: tuple[str, ...],
        respond: Callable[[Request], Response | None],
        robots: str | None = None,
    ) -> None:
        self.keys, self.robots, self.quirks, self._respond = keys, robots, {}, respond

    def respond(self, request: Request) -> Response:
        return self._respond(request) or Response(404)


@contextmanager
def replay(settings: Settings, *sites: Replay) -> Iterator[tuple[Settings, Web]]:
    """Serve the sites on loopback; yield settings that lead to them, and the log of requests."""
    # A later server may get the same port: no response of it may be in the cache.
    with serve_sites(sites) as web, tempfile.TemporaryDirectory() as scratch:
        found = {"sites": dict(web.urls), "contact": "operator@example.org"}
        yield settings.model_copy(update={**found, "work_dir": Path(scratch)}), web
