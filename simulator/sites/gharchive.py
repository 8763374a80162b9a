"""GH Archive: the public timeline of the simulated GitHub, one gzip file of JSON lines an hour."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
from collections.abc import Iterator

from core.month import Month
from simulator.repositories import trending_repositories
from simulator.server import QuirkName, Request, Response
from simulator.world import World

_STARS = 12  # an hour, of the first; each further repository gets one less
_DAMAGED = b'{"type":"WatchEvent","repo":\n'


class Site:
    """See the module's text. Before the world began, and after it, there are no files."""

    keys: tuple[str, ...] = ("gharchive",)
    robots: str | None = None

    def __init__(self, world: World) -> None:
        self.quirks: dict[QuirkName, int] = {}
        self._world = world
        self._names = [repository.name for repository in trending_repositories(world)]

    def respond(self, request: Request) -> Response:
        """Give the file of an hour; the hour is written without a leading zero."""
        match = re.fullmatch(
            "/([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9]|1[0-9]|2[0-3]).json.gz", request.path
        )
        hour = _moment(*match.groups()) if match else None
        if hour is None or not self._world.first <= Month.of(hour) <= self._world.last:
            return Response(404, {"Content-Type": "application/xml"}, b"<Code>NoSuchKey</Code>")
        lines = [json.dumps(event, separators=(",", ":")) for event in self._events(hour)]
        body = "\n".join(lines).encode() + b"\n" + _DAMAGED
        return Response(200, {"Content-Type": "application/gzip"}, gzip.compress(body, mtime=0))

    def _events(self, hour: dt.datetime) -> Iterator[dict[str, object]]:
        number = 0
        for place, name in enumerate(self._names):
            for kind, count in (("WatchEvent", _STARS - place), ("PushEvent", 20 * place)):
                for _ in range(count):
                    number += 1
                    yield {
                        "id": f"{hour:%Y%m%d%H}{number:06}",
                        "type": kind,
                        "actor": {"id": number, "login": f"someone-{number}"},
                        "repo": {"id": 900_000 + place, "name": name},
                        "payload": {"action": "started"} if kind == "WatchEvent" else {"size": 1},
                        "public": True,
                        "created_at": f"{hour:%Y-%m-%dT%H}:{number % 60:02}:00Z",
                    }


def _moment(day: str, hour: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(f"{day}T{int(hour):02}:00:00+00:00")
    except ValueError:
        return None
