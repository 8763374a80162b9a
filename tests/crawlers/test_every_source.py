"""Every crawler against its site under every fault; a new source is found by its files."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from core.corpus import list_sealed
from core.errors import AccessRefused
from core.storage import Store
from crawlers import git, pacing
from crawlers.contract import list_sources
from simulator import server
from simulator.faults import KNOBS, knob
from simulator.server import Fault, QuirkName

from .every_source import Outcome, Scene, Webs, disturbed, exactly, is_made_of, listing, watch
from .patience import ALWAYS, FINAL, PASSING, WAITING, crawl_until_met

ROOT = Path(__file__).resolve().parents[2]
_scenes: dict[str, Scene] = {}


@pytest.fixture(scope="module")
def webs() -> Iterator[Webs]:
    running = Webs()
    yield running
    running.close()
    _scenes.clear()


@pytest.fixture(params=list_sources())
def scene(
    request: pytest.FixtureRequest, webs: Webs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A source of the simulated web; what is done to the web is undone."""
    source = request.param
    if source not in _scenes:
        _scenes[source] = watch(source, webs, tmp_path_factory.mktemp(source))
    with disturbed(_scenes[source].web), listing(_scenes[source]):
        yield _scenes[source]


_pause_s = pacing._pause_s


def _short_pause_s(failure: pacing.TryAgain, failures: int) -> float:
    """What a site asks for is kept; what a crawler's own rules add (a minute) is not waited for."""
    pause_s = _pause_s(failure, failures)
    return pause_s if pause_s < 2 else 0.01


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules, with shorter times."""
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(pacing, "_pause_s", _short_pause_s)
    monkeypatch.setitem(git._CONFIG, "http.lowSpeedTime", "1")
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 0.02)
    monkeypatch.setattr(server, "STALL_S", 10.0)
    monkeypatch.setattr(server, "BOMB_BYTES", 2**26)


def check(scene: Scene, outcome: Outcome) -> None:
    """What holds whatever happens: nothing false is kept, and nothing is lost without a word."""
    for native_id, text in outcome.texts.items():
        assert is_made_of(text, scene.texts[native_id])
    if outcome.seal is None:
        return
    counts = outcome.manifest
    lost = sum(counts["dropped"].values()) + sum(counts["failed"].values()) + counts["repeated"]
    assert counts["requested"] == counts["kept"] + lost
    assert counts["kept"] == len(outcome.texts)
    assert lost == len(outcome.others)
    assert (counts["status"] == "partial") == bool(counts["failed"] or counts["ended_early"])
    if not counts["ended_early"] and not scene.whole.accounted <= outcome.accounted:
        # A list within the month cannot be had, such as a repository: that is counted as one item.
        assert outcome.accounted - scene.whole.accounted


def test_a_source_gives_a_simulated_month(scene: Scene) -> None:
    assert scene.whole.error is None and not scene.whole.seal.is_partial  # type: ignore[union-attr]
    assert 0 < len(scene.whole.texts) <= len(scene.texts)
    check(scene, scene.whole)


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_changes_nothing(scene: Scene, name: str, tmp_path: Path) -> None:
    scene.web.faults += [knob(name, key, exactly(target)) for key, target in scene.kinds.values()]
    outcome = scene.crawl(tmp_path)
    assert [fault.pattern for fault in scene.web.faults if fault.times] == []
    assert outcome.error is None
    assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    assert outcome.manifest["status"] == "complete"


@pytest.mark.parametrize("name", [name for name in KNOBS if name not in WAITING])
def test_a_fault_that_stays_spoils_one_request_alone(
    scene: Scene, name: str, tmp_path: Path
) -> None:
    trap = scene.web.urls["trap"]
    for number, (key, target) in enumerate(scene.kinds.values()):
        fault = knob(name, key, exactly(target), ALWAYS)
        if fault.kind == "redirect_off_host":
            fault = dataclasses.replace(fault, headers={"Location": f"{trap}/latest"})
        scene.web.faults.append(fault)
        home, outcome = crawl_until_met(scene.crawl, fault, tmp_path / str(number))
        scene.web.faults.clear()
        assert fault.times < ALWAYS
        check(scene, outcome)
        if name in PASSING and outcome.manifest.get("status") == "complete":
            assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
        assert scene.web.traffic["trap"].arrivals == []
        after = tmp_path / f"after-{number}" if name in FINAL else home
        mended = scene.crawl(after)
        assert mended.error is None
        assert mended.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


@pytest.mark.parametrize("quirk", get_args(QuirkName))
def test_a_quirk_of_a_site_harms_nothing(scene: Scene, quirk: QuirkName, tmp_path: Path) -> None:
    for key in scene.keys:
        scene.web.sites[key].quirks[quirk] = 2
    outcome = scene.crawl(tmp_path)
    check(scene, outcome)
    if quirk in ("extra_fields", "moving_items"):
        assert outcome.error is None
        assert outcome.texts == scene.whole.texts
    for key in scene.keys:
        scene.web.sites[key].quirks.clear()
    mended = scene.crawl(tmp_path)
    assert mended.seal is not None
    assert mended.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


def test_robots_that_cannot_be_read_end_a_crawl(scene: Scene, tmp_path: Path) -> None:
    asks = {key for key, target in scene.targets if target == "/robots.txt"}
    if not asks:
        pytest.skip("git does not ask robots.txt")
    scene.web.faults += [Fault("status", key, "^/robots.txt$", ALWAYS) for key in asks]
    begun = len(scene.web.requests)
    assert isinstance(scene.crawl(tmp_path).error, AccessRefused)
    assert {path for _, _, path in scene.web.requests[begun:]} == {"/robots.txt"}
    scene.web.faults.clear()
    assert scene.crawl(tmp_path).seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


def test_a_site_without_robots_is_crawled(scene: Scene, tmp_path: Path) -> None:
    scene.web.faults += [
        Fault("status", key, "^/robots.txt$", ALWAYS, status=404) for key in scene.keys
    ]
    assert scene.crawl(tmp_path).seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


def test_a_site_that_is_closed_to_robots_is_left_alone(scene: Scene, tmp_path: Path) -> None:
    asks = {key for key, target in scene.targets if target == "/robots.txt"}
    if not asks:
        pytest.skip("git does not ask robots.txt")
    rules = b"User-agent: *\nDisallow: /\n"
    scene.web.faults += [
        Fault("status", key, "^/robots.txt$", ALWAYS, 200, {}, rules) for key in asks
    ]
    begun = len(scene.web.requests)
    check(scene, scene.crawl(tmp_path))
    asked = {path.partition("?")[0] for key, _, path in scene.web.requests[begun:] if key in asks}
    assert asked <= {"/robots.txt", *scene.info.robots_exempt_paths}


def test_no_request_is_above_the_limits(scene: Scene, tmp_path: Path) -> None:
    limit_s = 0.02
    scene.web.limits = dict.fromkeys(scene.keys, limit_s)
    outcome = scene.crawl(tmp_path, request_interval_s=10 * limit_s)
    assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    for key in {key for key, _ in scene.targets}:
        traffic = scene.web.traffic[key]
        assert traffic.arrivals
        assert traffic.num_refused == 0
        assert traffic.smallest_gap_s >= limit_s
        assert traffic.most_at_once == 1


_CRAWL = """
import json, sys
from pathlib import Path
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers.contract import load_crawler
from crawlers.crawl import crawl_partition

settings = Settings.model_validate_json(sys.argv[1])
for name, path in json.loads(sys.argv[4]).items():
    setattr(load_crawler(sys.argv[2]), name, Path(path))
crawl_partition(sys.argv[2], Month(sys.argv[3]), Store(settings.home), settings, limit=3)
"""


def test_killed_and_resumed_is_undisturbed(scene: Scene, tmp_path: Path) -> None:
    asked = [pair for pair in scene.targets if pair[1] != "/robots.txt"]
    key, target = asked[len(asked) // 2]
    scene.web.faults.append(Fault("stall", key, exactly(target)))
    settings = scene.settings(tmp_path).model_dump_json()
    lists = json.dumps({name: str(path) for name, path in scene.lists.items()})
    command = [sys.executable, "-c", _CRAWL, settings, scene.source, str(scene.month), lists]
    with subprocess.Popen(command, cwd=ROOT) as crawl:
        until = time.monotonic() + 60
        while scene.web.faults[0].times and crawl.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        crawl.kill()
    assert crawl.returncode == -9
    scene.web.faults.clear()
    assert list_sealed(Store(str(tmp_path))) == []
    begun = len(scene.web.requests)
    outcome = scene.crawl(tmp_path)
    assert outcome.seal is not None
    assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    assert len(scene.web.requests) - begun < len(scene.targets)
