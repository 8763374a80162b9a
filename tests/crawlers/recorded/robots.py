"""robots.txt of sites: what a crawler may request, and what not."""

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.errors import ItemUnavailable
from core.settings import Settings
from crawlers.questions import manifold
from crawlers.web.fetcher import Fetcher
from simulator.server import Response
from tests.crawlers.recorded import Case, Replay, replay

# By host, as files are named: exempt paths, paths that may be requested, and paths that may not.
Robots = Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]
ROBOTS: Robots = {
    "manifold.markets": (
        manifold.INFO.robots_exempt_paths, ("/v0/markets?limit=9", "/v0/market/x"), (),
    ),
}  # fmt: skip


def check_robots(robots: Robots, folder: Path, settings: Settings) -> None:
    found = {path: host for host in robots for path in folder.glob(f"{host}.*txt")}
    assert found
    for path, host in found.items():
        exempt, allowed, refused = robots[host]
        text = path.read_text(encoding="utf-8").replace("Crawl-delay: 15\n", "")  # do not wait
        site = Replay(("x",), lambda _: Response(body=b"{}"), text)
        with replay(settings, site) as (own, web):
            fetcher = Fetcher(own, {"x": ""}, 0, robots_exempt_paths=exempt, use_cache=False)
            for each in allowed:
                assert fetcher.get("x", each).body == b"{}"
            for each in refused:
                with pytest.raises(ItemUnavailable, match="robots.txt disallows"):
                    fetcher.get("x", each)
            assert len(web.requests) == 1 + len(allowed)


CASES = [Case("robots", functools.partial(check_robots, ROBOTS))]
