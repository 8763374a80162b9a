"""Every crawler of questions against its site under every fault; a new one is found by its file."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from core.errors import AccessRefused
from core.questions import list_questions
from core.storage import Store
from crawlers import pacing
from crawlers.questions.contract import list_question_sources, load_question_crawler
from crawlers.raw_cache import Fetched, RawCache
from simulator import server
from simulator.faults import KNOBS, knob
from simulator.server import Fault, QuirkName, Web

from ..patience import ALWAYS, FINAL, PASSING, WAITING, crawl_until_met
from .scene import MARCH, TOKENS, Outcome, Scene, exactly, reads_pages, small_web, watch

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [source for source in list_question_sources() if not reads_pages(source)]
_scenes: dict[str, Scene] = {}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with small_web() as running:
        yield running
    _scenes.clear()


@pytest.fixture(params=SOURCES)
def scene(
    request: pytest.FixtureRequest, web: Web, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    source = request.param
    if source not in _scenes:
        _scenes[source] = watch(source, web, tmp_path_factory.mktemp(source))
    for traffic in web.traffic.values():
        traffic.clear()
    yield _scenes[source]
    web.faults.clear()
    web.limits.clear()
    for site in web.sites.values():
        site.quirks.clear()


_pause_s = pacing._pause_s


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules, with shorter times."""
    short = lambda failure, failures: min(_pause_s(failure, failures), 1.0)  # noqa: E731
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(pacing, "_pause_s", short)
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 0.02)
    monkeypatch.setattr(server, "STALL_S", 10.0)
    monkeypatch.setattr(server, "BOMB_BYTES", 2**26)


def check(scene: Scene, outcome: Outcome) -> None:
    """What holds whatever happens: nothing false is kept, and nothing is lost without a word."""
    whole = scene.whole.questions
    for name, question in outcome.questions.items():
        for column in ("title", "options", "answer_index", "status", "resolved_at", "opened_at"):
            assert getattr(question, column) == getattr(whole[name], column)
    if outcome.seal is None:
        return
    counts = outcome.manifest
    lost = sum(counts["dropped"].values()) + sum(counts["failed"].values()) + counts["repeated"]
    assert counts["requested"] == counts["kept"] + lost
    assert counts["kept"] == len(outcome.questions)
    assert lost == len(outcome.others)
    assert (counts["status"] == "partial") == bool(counts["failed"] or counts["ended_early"])
    if not counts["ended_early"]:
        lost_ids = {other["native_id"] for other in outcome.others}
        assert whole.keys() <= outcome.questions.keys() | lost_ids


def test_a_source_gives_a_simulated_month(scene: Scene) -> None:
    assert scene.whole.error is None
    assert scene.whole.manifest["status"] == "complete"
    assert len(scene.whole.questions) == 12
    check(scene, scene.whole)
    assert {question.source for question in scene.whole.questions.values()} == {scene.source}
    assert scene.whole.manifest["passed_over"]["open"] >= 1
    assert scene.whole.manifest["passed_over"]["other_month"] >= 12


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_changes_nothing(scene: Scene, name: str, tmp_path: Path) -> None:
    targets = list(scene.kinds.values())[: 1 if name in WAITING else None]
    faults = [knob(name, scene.source, exactly(target)) for target in targets]
    scene.web.faults += faults
    outcome = scene.crawl(tmp_path)
    assert [fault.pattern for fault in faults if fault.times] == []
    assert outcome.error is None
    assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    assert outcome.manifest["status"] == "complete"


@pytest.mark.parametrize("name", [name for name in KNOBS if name not in WAITING])
def test_a_fault_that_stays_spoils_one_request_alone(
    scene: Scene, name: str, tmp_path: Path
) -> None:
    trap = scene.web.urls["trap"]
    for number, target in enumerate(scene.kinds.values()):
        fault = knob(name, scene.source, exactly(target), ALWAYS)
        if fault.kind == "redirect_off_host":
            fault = dataclasses.replace(fault, headers={"Location": f"{trap}/latest"})
        scene.web.faults.append(fault)
        home, outcome = crawl_until_met(scene.crawl, fault, tmp_path / str(number))
        scene.web.faults.clear()
        assert fault.times < ALWAYS
        check(scene, outcome)
        assert scene.web.traffic["trap"].arrivals == []
        # What was the site's own word is in a complete month; that is only asked for again on
        # demand.
        is_final = name in FINAL and outcome.seal is not None and not outcome.seal.is_partial
        mended = scene.crawl(home, replace=is_final or outcome.manifest.get("status") == "complete")
        assert mended.error is None
        assert mended.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


@pytest.mark.parametrize("quirk", get_args(QuirkName))
def test_a_quirk_of_a_site_harms_nothing(scene: Scene, quirk: QuirkName, tmp_path: Path) -> None:
    scene.web.sites[scene.source].quirks[quirk] = 2
    outcome = scene.crawl(tmp_path)
    check(scene, outcome)
    if quirk != "missing_fields":
        assert outcome.error is None
        assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    scene.web.sites[scene.source].quirks.clear()
    mended = scene.crawl(tmp_path, replace=True)
    assert mended.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


def test_an_item_on_two_pages_counts_once(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.web.sites[scene.source].quirks["moving_items"] = 9
    monkeypatch.setattr(scene.web.sites[scene.source], "max_limit", 4)
    outcome = scene.crawl(tmp_path)
    assert outcome.questions == scene.whole.questions
    assert outcome.manifest["repeated"] >= 1


def test_pages_that_stay_empty_never_make_a_month_complete(scene: Scene, tmp_path: Path) -> None:
    last = [target for target in scene.targets if target != "/robots.txt"][-1]
    lists = {target for target in scene.targets if target.split("?")[0] == last.split("?")[0]}
    if len(lists) < 2:  # the last was a record
        lists = {target for target in scene.targets if "before=" in target}
    empty = {"manifold": b"[]", "polymarket": b'{"markets": []}'}.get(
        scene.source, b'{"next": null, "previous": null, "results": []}'
    )
    scene.web.faults.append(
        Fault("status", scene.source, exactly(max(lists)), ALWAYS, 200, {}, empty)
    )
    outcome = scene.crawl(tmp_path)
    assert outcome.error is not None or outcome.manifest["status"] == "partial"
    scene.web.faults.clear()
    mended = scene.crawl(tmp_path)
    assert mended.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]


def test_robots_that_cannot_be_read_end_a_crawl(scene: Scene, tmp_path: Path) -> None:
    scene.web.faults.append(Fault("status", scene.source, "^/robots.txt$", ALWAYS))
    begun = len(scene.web.requests)
    assert isinstance(scene.crawl(tmp_path).error, AccessRefused)
    assert {path for _, _, path in scene.web.requests[begun:]} == {"/robots.txt"}


def test_a_site_that_is_closed_to_robots_is_left_alone(scene: Scene, tmp_path: Path) -> None:
    rules = b"User-agent: *\nDisallow: /\n"
    fault = Fault("status", scene.source, "^/robots.txt$", ALWAYS, 200, {}, rules)
    scene.web.faults.append(fault)
    begun = len(scene.web.requests)
    outcome = scene.crawl(tmp_path)
    asked = {path.partition("?")[0] for _, _, path in scene.web.requests[begun:]}
    exempt = load_question_crawler(scene.source).INFO.robots_exempt_paths
    assert asked <= {"/robots.txt", *exempt}
    assert exempt or isinstance(outcome.error, AccessRefused)


def test_no_request_is_above_the_limits(scene: Scene, tmp_path: Path) -> None:
    limit_s = 0.02
    scene.web.limits = {scene.source: limit_s}
    outcome = scene.crawl(tmp_path, request_interval_s=5 * limit_s)
    assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    traffic = scene.web.traffic[scene.source]
    assert traffic.num_refused == 0
    assert traffic.smallest_gap_s >= limit_s
    assert traffic.most_at_once == 1


_CRAWL = """
import json, sys
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers.questions.crawl import crawl_questions

settings = Settings(**json.loads(sys.argv[1]), tokens=json.loads(sys.argv[2]))
crawl_questions(sys.argv[3], [Month(sys.argv[4])], Store(settings.home), settings)
"""


def test_killed_and_resumed_is_undisturbed(scene: Scene, tmp_path: Path) -> None:
    asked = [target for target in scene.targets if target != "/robots.txt"]
    scene.web.faults.append(Fault("stall", scene.source, exactly(asked[len(asked) // 2])))
    settings = {"home": str(tmp_path), "request_interval_s": 0, "sites": scene.web.urls}
    arguments = (json.dumps(settings), json.dumps(TOKENS), scene.source, str(MARCH))
    with subprocess.Popen([sys.executable, "-c", _CRAWL, *arguments], cwd=ROOT) as crawl:
        until = time.monotonic() + 60
        while scene.web.faults[0].times and crawl.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        crawl.kill()
    assert crawl.returncode == -9
    scene.web.faults.clear()
    assert list_questions(Store(str(tmp_path))) == []
    begun = len(scene.web.requests)
    outcome = scene.crawl(tmp_path)
    assert outcome.seal.digest == scene.whole.seal.digest  # type: ignore[union-attr]
    assert len(scene.web.requests) - begun < len(scene.targets)


def test_what_the_cache_has_from_before_the_month_ended_is_asked_for_anew(
    scene: Scene, tmp_path: Path
) -> None:
    load = RawCache.load
    too_old = MARCH.end - dt.timedelta(seconds=1)

    def aged(self: RawCache, request: str) -> Fetched | None:
        found = load(self, request)
        return found and dataclasses.replace(found, retrieved_at=too_old)

    assert scene.crawl(tmp_path / "one").error is None
    for path in (tmp_path / "one" / "questions").rglob("manifest.json"):
        path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawCache, "load", aged)
        begun = len(scene.web.requests)
        assert scene.crawl(tmp_path / "one").error is None
    asked = {target for _, _, target in scene.web.requests[begun:]}
    lists = {each for each in scene.targets if "limit=" in each}
    assert lists <= asked
