"""Every crawler against its site under every class of fault; files declare the sources.

`make test` deals the faults that stay to the sources of the kernel, and gives each of these sources
two faults of each class that pass. Sources of extras have one fault that stays, and one of each
class that passes, in `make test-all`. The mark ``matrix`` is on the full product: every source,
every fault, every request.
"""

import contextlib
import dataclasses
import datetime as dt
import itertools
import json
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

import simulator.faults
from core.errors import AccessRefused, SourceChanged
from core.plugins import list_extras
from crawlers import registry
from crawlers.git import binary as git
from crawlers.web import pacing
from crawlers.web.exchange import Exchange
from crawlers.web.raw_cache import Fetched, RawCache
from crawlers.web.urls import is_covered
from simulator import server
from simulator.faults import KNOBS, knob
from simulator.server import Fault, QuirkName
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.every_source import (
    GATED,
    DocumentScene,
    QuestionScene,
    Scene,
    Webs,
    disturbed,
    exactly,
    list_kinds,
    list_scenes,
    watch,
)
from tests.crawlers.faults import (
    ALWAYS,
    CLASSES,
    FINAL,
    PERMANENT,
    TRANSIENT,
    assign,
    crawl_until_met,
    deal,
)
from tests.crawlers.questions.scene import MARCH
from tests.forks import Forks, forking
from tests.loopback import wait_for
from tests.tiers import few

NAMES = list_scenes()
QUESTIONS = [name for name in NAMES if name.startswith("questions.")]
_OF_KERNEL = {module.rpartition(".")[2] for module in (*registry.OPEN, *registry.QUESTIONS)}
KERNEL = [name for name in NAMES if name.removeprefix("questions.").partition(":")[0] in _OF_KERNEL]
# Sites with an item in the month's first second and one in its last, or of its first and last day.
FILLED = (
    "arxiv", "biorxiv", "commons_images", "edgar", "federal_register",
    "git_posts:swift", "github_new", "github_projects", "global_voices",
    "govuk", "hackernews", "scp_tales", "stackexchange", "wikinews", "wikipedia_new",
)  # fmt: skip
# A representative of each way to sample, and to go on: lists, windows, archives, git, questions.
SAMPLED = ("commons_images", "git_posts:swift", "govuk", "hackernews", "wikipedia_changes")
KILLED = (
    "arxiv", "common_crawl", "commons_images", "git_posts:swift", "github_projects", "hackernews",
    "questions.kalshi", "questions.manifold", "questions.metaculus", "wikipedia_changes",
)  # fmt: skip
# Windows of time in which lists are read, a request each: larger and fewer ones.
WINDOWS = {
    "crawlers.hackernews.WINDOW_S": 4 * 86400,
    "extras.more_sources.wikipedia_changes.NUM_WINDOWS": 24,
    "extras.media.commons.NUM_WINDOWS": 12,
}
STAYING = [name for names in PERMANENT.values() for name in names]
_scenes: dict[str, Scene] = {}
pytestmark = pytest.mark.timeout(300)  # whatever a site does, a crawl ends


@pytest.fixture(scope="module")
def webs() -> Iterator[Webs]:
    running = Webs()
    yield running
    running.close()
    _scenes.clear()


def given(names: Iterable[str], chosen: Sequence[str] = NAMES) -> list[Any]:
    """Return names for a parameter; those that are not chosen are ``slow``.

    Sources of extras have the mark ``extra``, and gated ones ``matrix``.
    """
    return [pytest.param(name, marks=list(_marks_of(name, chosen))) for name in names]


def _marks_of(name: str, chosen: Sequence[str]) -> Iterator[pytest.MarkDecorator]:
    if name not in chosen:
        yield pytest.mark.slow
    if name not in KERNEL:
        yield pytest.mark.matrix if name in GATED else pytest.mark.extra


def place_of(scene: Scene) -> int:
    """Return the position of a source among those of the kernel, or of an extra among all."""
    names = KERNEL if scene.name in KERNEL else NAMES
    return names.index(scene.name)


def staying_faults_of(name: str) -> list[str]:
    """Return the faults that stay which a source has without ``matrix``: all, over the kernel."""
    if name in KERNEL:
        return STAYING[KERNEL.index(name) :: len(KERNEL)]
    return [STAYING[NAMES.index(name) % len(STAYING)]]


def passing_faults_of(name: str) -> list[str]:
    """Return the faults that pass which a source has: two of each class, or one for an extra."""
    if name not in KERNEL:
        return assign(TRANSIENT, NAMES.index(name))
    place = KERNEL.index(name)
    return [*dict.fromkeys([*assign(TRANSIENT, place), *assign(TRANSIENT, place + 1)])]


@pytest.fixture(params=given(NAMES))
def scene(
    request: pytest.FixtureRequest, webs: Webs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    name = request.param
    if name not in _scenes:
        _scenes[name] = watch(name, webs, tmp_path_factory.mktemp(name))
    with disturbed(_scenes[name].web), _scenes[name].prepared():
        yield _scenes[name]


_pause_s = pacing._pause_s


def _short_pause_s(failure: pacing.TryAgain, failures: int) -> float:
    """Keep a site's own pause; shorten the pause that a crawler's rules add (a minute)."""
    pause_s = _pause_s(failure, failures)
    return pause_s if pause_s < 2 else 0.01


def _windows() -> dict[str, int]:
    """Return the windows of the sources that are here."""
    here = ("crawlers.", *(f"extras.{name}." for name in list_extras()))
    return {name: value for name, value in WINDOWS.items() if name.startswith(here)}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _windows().items():
        monkeypatch.setattr(name, value)
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(pacing, "_pause_s", _short_pause_s)
    monkeypatch.setitem(git._CONFIG, "http.lowSpeedTime", "1")
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 0.02)
    monkeypatch.setattr(server, "STALL_S", 10.0)
    monkeypatch.setattr(server, "BOMB_BYTES", 2**26)


def test_the_short_list_has_each_fault() -> None:
    assert sorted(name for names in CLASSES.values() for name in names) == sorted(KNOBS)
    met = Counter(fault for name in KERNEL for fault in passing_faults_of(name))
    assert met.keys() == {name for names in TRANSIENT.values() for name in names}
    assert min(met.values()) >= 2
    assert sorted(fault for name in KERNEL for fault in staying_faults_of(name)) == sorted(STAYING)


def test_a_source_gives_a_simulated_month(scene: Scene) -> None:
    assert scene.whole.error is None and not scene.whole.seal.is_partial
    assert scene.whole.items
    scene.check(scene.whole)
    if isinstance(scene, QuestionScene):
        games = [each for each in scene.whole.others if each["reason"] == "low_quality"]
        assert len(scene.whole.items) + len(games) >= 12
        assert {question.source for question in scene.whole.items.values()} == {scene.source}
        assert scene.whole.manifest["passed_over"]["open"] >= 1
        if scene.source != "kalshi":  # its list has the month's markets only
            assert scene.whole.manifest["passed_over"]["other_month"] >= 12
    if isinstance(scene, DocumentScene):
        rows, end = scene.rows.values(), scene.month.end
        times = [row["event_time"] for row in rows]
        assert max(times).day == (end - dt.timedelta(days=1)).day  # not cut at the 28th
        if scene.name in FILLED:
            assert min(times) == scene.month.start
            assert max(times) in {end - dt.timedelta(days=1), end - dt.timedelta(seconds=1)}
        assert all(row["text_as_of"] < end for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("scene", given(list_kinds(), SAMPLED), indirect=True)
def test_a_sample_depends_on_the_seed_alone(scene: Scene, tmp_path: Path) -> None:
    first, again = (scene.crawl(tmp_path / name, limit=2, seed=1) for name in ("first", "again"))
    assert first.seal.digest == again.seal.digest
    assert 1 <= len(first.items) <= 2
    others = (scene.crawl(tmp_path / str(seed), limit=2, seed=seed) for seed in range(2, 7))
    assert any(other.items.keys() != first.items.keys() for other in others)


@pytest.mark.parametrize("scene", given(list_kinds()), indirect=True)
def test_a_sample_of_bytes_ends_when_it_is_full(scene: DocumentScene, tmp_path: Path) -> None:
    outcome = scene.crawl(tmp_path, limit=None, max_bytes=1_000)
    items = outcome.items.values()
    sizes = [len(item if isinstance(item, bytes) else item.encode()) for item in items]
    assert 0 < sum(sizes) < 1_000 + 2 * max(sizes)  # hygiene may drop one
    assert len(sizes) < len(scene.rows)


def inject_transient(scene: Scene, faults: Iterable[tuple[str, tuple[str, str]]]) -> None:
    scene.web.faults += [knob(name, key, exactly(target)) for name, (key, target) in faults]


def check_unnoticed(scene: Scene, home: Path) -> None:
    outcome = scene.crawl(home)
    assert [fault.pattern for fault in scene.web.faults if fault.times] == []
    assert outcome.error is None
    assert outcome.seal.digest == scene.digest
    assert outcome.manifest["status"] == "complete"


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another zone than UTC: peers convert seconds to local time, or send times without a zone."""
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.long
@pytest.mark.usefixtures("far_east")
def test_transient_faults_and_the_time_zone_of_the_machine_change_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    names, kinds = passing_faults_of(scene.name), scene.kinds
    num = max(len(names), len(kinds))
    targets = {*scene.targets} - {(key, "/robots.txt") for key, _ in scene.targets}
    if len(targets) == 2:  # one transfer of git, which is tried three times
        num = 2
    pairs = zip(itertools.cycle(names), itertools.cycle(kinds), strict=False)
    inject_transient(scene, itertools.islice(pairs, num))
    check_unnoticed(scene, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("name", [name for names in TRANSIENT.values() for name in names])
def test_every_transient_fault_changes_nothing(scene: Scene, name: str, tmp_path: Path) -> None:
    inject_transient(scene, ((name, kind) for kind in scene.kinds))
    check_unnoticed(scene, tmp_path)


def check_contained(scene: Scene, name: str, kinds: list[tuple[str, str]], folder: Path) -> None:
    trap = scene.web.urls["trap"]
    for number, (key, target) in enumerate(kinds):
        fault = knob(name, key, exactly(target), ALWAYS)
        if fault.kind == "redirect_off_host":
            fault = dataclasses.replace(fault, headers={"Location": f"{trap}/latest"})
        scene.web.faults.append(fault)
        home, outcome = crawl_until_met(scene.crawl, fault, folder / str(number))
        scene.web.faults.clear()
        assert fault.times < ALWAYS
        scene.check(outcome)
        transient = {each for names in TRANSIENT.values() for each in names}
        if name in transient and outcome.manifest.get("status") == "complete":
            assert outcome.seal.digest == scene.digest
        assert scene.web.traffic["trap"].arrivals == []
        # The cache keeps a final refusal; a complete month is not asked for again.
        is_new = name in FINAL and not isinstance(scene, QuestionScene)
        mended = scene.crawl(folder / f"after-{number}" if is_new else home)
        assert mended.error is None
        assert mended.seal.digest == scene.digest


@pytest.mark.long
def test_a_permanent_fault_spoils_one_request_alone(scene: Scene, tmp_path: Path) -> None:
    kinds = deal(scene.kinds, place_of(scene) % len(PERMANENT), len(PERMANENT))
    for number, name in enumerate(staying_faults_of(scene.name)):
        check_contained(scene, name, kinds, tmp_path / str(number))


@pytest.mark.matrix
@pytest.mark.parametrize("name", STAYING)
def test_every_permanent_fault_spoils_one_request_alone(
    scene: Scene, name: str, tmp_path: Path
) -> None:
    check_contained(scene, name, scene.kinds, tmp_path)


HARMLESS: tuple[QuirkName, ...] = ("extra_fields", "moving_items")
HARMFUL = tuple(quirk for quirk in get_args(QuirkName) if quirk not in HARMLESS)


def check_quirks(scene: Scene, quirks: Iterable[QuirkName], home: Path) -> None:
    quirks = list(quirks)
    for key in scene.keys:
        scene.web.sites[key].quirks.update(dict.fromkeys(quirks, 2))
    outcome = scene.crawl(home)
    scene.check(outcome)
    if {*quirks} <= {*HARMLESS}:
        assert outcome.error is None
        assert outcome.items == scene.whole.items
        return
    for key in scene.keys:
        scene.web.sites[key].quirks.clear()
    mended = scene.crawl(home)
    assert mended.seal is not None
    assert mended.seal.digest == scene.digest


@pytest.mark.long
@pytest.mark.parametrize("place", few(range(2), 1))
def test_quirks_of_a_site_harm_nothing(scene: Scene, place: int, tmp_path: Path) -> None:
    """`make test` gives each second source the harmless ones, and the others the harmful ones."""
    number = (place_of(scene) + place) % 2
    check_quirks(scene, (HARMLESS, HARMFUL)[number], tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("quirk", get_args(QuirkName))
def test_each_quirk_of_a_site_harms_nothing(scene: Scene, quirk: QuirkName, tmp_path: Path) -> None:
    check_quirks(scene, [quirk], tmp_path)


CHANGED = {  # source: site, request, another answer than is expected, what is said of it
    "biorxiv": ("biorxiv_api", "/details", b'{"messages": [], "collection": []}', "expected ok"),
    "edgar": ("edgar", "master.idx", b"CIK;Form;File\n1;8-K;edgar/data/1/a.txt\n", "no line"),
    "github_new": ("github_api", "/search", b'{"items": []}', "'total_count'"),
    "govuk": ("govuk", "search.json", b'{"results": {}}', "results is {}, expected a list"),
    "wikipedia_changes": (
        "wikipedia", "allrevisions",
        b'{"query": {"allrevisions": [{"pageid": "1", "revisions": []}]}}', "'pageid'",
    ),
    "wikipedia_new": (
        "wikipedia", "logevents", b'{"query": {"logevents": [{"logid": 1, "logpage": "9"}]}}',
        "'logpage'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("scene", given(name for name in CHANGED if name in NAMES), indirect=True)
def test_a_list_of_another_form_is_a_change_of_the_site(scene: Scene, tmp_path: Path) -> None:
    key, request, answer, says = CHANGED[scene.name]
    scene.web.faults.append(Fault("status", key, request, ALWAYS, 200, {}, answer))
    error = scene.crawl(tmp_path).error
    assert isinstance(error, SourceChanged) and says in str(error)


@pytest.mark.matrix
def test_a_site_without_robots_is_crawled(scene: Scene, tmp_path: Path) -> None:
    scene.web.faults += [
        Fault("status", key, "^/robots.txt$", ALWAYS, status=404) for key in scene.keys
    ]
    assert scene.crawl(tmp_path).seal.digest == scene.digest


def test_a_site_that_is_closed_to_robots_is_left_alone(scene: Scene, tmp_path: Path) -> None:
    if not scene.robots_keys:
        pytest.skip("git does not read robots.txt")
    scene.web.faults += [Fault("status", key, "^/robots.txt$", ALWAYS) for key in scene.robots_keys]
    begun = len(scene.web.requests)
    assert isinstance(scene.crawl(tmp_path / "unreadable").error, AccessRefused)
    assert {path for _, _, path in scene.web.requests[begun:]} == {"/robots.txt"}
    scene.web.faults.clear()

    rules = b"User-agent: *\nDisallow: /\n"
    scene.web.faults += [
        Fault("status", key, "^/robots.txt$", ALWAYS, 200, {}, rules) for key in scene.robots_keys
    ]
    begun = len(scene.web.requests)
    outcome = scene.crawl(tmp_path / "closed")
    scene.check(outcome)
    requested = {
        path.partition("?")[0]
        for key, _, path in scene.web.requests[begun:]
        if key in scene.robots_keys
    }
    exempt = scene.info.robots_exempt_paths
    for path in requested - {"/robots.txt"}:
        assert any(is_covered(path, pattern) for pattern in exempt), path
    if isinstance(scene, QuestionScene):
        assert exempt or isinstance(outcome.error, AccessRefused)


def _say_simulated(exchange: Exchange, site: str) -> None:
    exchange.is_simulated = True


# In simulated time, which passes in pauses only: a busy machine delays no request.
def test_no_request_is_above_the_limits(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, limit_s = SimulatedTime(), 1.0
    for module in (pacing, git, simulator.faults):
        monkeypatch.setattr(module, "time", clock)
    scene.web.limits = dict.fromkeys(scene.keys, limit_s)
    # A site that is read by git, and that the settings name, is asked once beside git's pace.
    monkeypatch.setattr(Exchange, "ask_whether_simulated", _say_simulated)
    outcome = scene.crawl(tmp_path, request_interval_s=1.5 * limit_s)
    assert outcome.seal.digest == scene.digest
    for key in {key for key, _ in scene.targets}:
        traffic = scene.web.traffic[key]
        assert traffic.arrivals
        assert traffic.num_refused == 0
        assert traffic.smallest_gap_s >= limit_s
        assert traffic.most_at_once == 1


_CRAWLER = """
import importlib, json, sys
import crawlers.crawling.crawl, crawlers.questions.crawl
from tests.forks import serve
for name, value in json.loads(sys.argv[1]).items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, value)
def work(job):
    sys.argv[1:] = job["arguments"]
    exec(job["code"], {"__name__": "__main__"})
serve(work)
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    with forking(_CRAWLER, environment, arguments=[json.dumps(_windows())]) as forks:
        yield forks


@pytest.mark.parametrize("scene", given(NAMES, KILLED), indirect=True)
def test_killed_and_resumed_is_undisturbed(scene: Scene, tmp_path: Path, forks: Forks) -> None:
    targets = [pair for pair in scene.targets if pair[1] != "/robots.txt"]
    key, target = targets[len(targets) // 2]
    scene.web.faults.append(Fault("stall", key, exactly(target)))
    job = {"code": scene.kill_code, "arguments": scene.kill_arguments(tmp_path)}
    crawl = psutil.Process(forks.start(job))
    [fault] = scene.web.faults
    wait_for(lambda: not fault.times or not crawl.is_running(), pause_s=0.005)
    with contextlib.suppress(psutil.NoSuchProcess):
        crawl.kill()
    assert forks.wait() == -signal.SIGKILL
    scene.web.faults.clear()
    assert scene.sealed(tmp_path) == []
    begun = len(scene.web.requests)
    outcome = scene.crawl(tmp_path)
    assert outcome.seal is not None
    assert outcome.seal.digest == scene.digest
    if len({*targets}) > 2:  # a killed clone of a single repository is made again
        assert len(scene.web.requests) - begun < len(scene.targets)


@pytest.mark.parametrize("scene", given(QUESTIONS), indirect=True)
def test_an_item_on_two_pages_counts_once(
    scene: QuestionScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.web.sites[scene.source].quirks["moving_items"] = 9
    monkeypatch.setattr(scene.web.sites[scene.source], "max_limit", 4)
    outcome = scene.crawl(tmp_path)
    assert outcome.items == scene.whole.items
    assert outcome.manifest["repeated"] >= 1


@pytest.mark.parametrize("scene", given(QUESTIONS), indirect=True)
def test_pages_that_stay_empty_never_make_a_month_complete(
    scene: QuestionScene, tmp_path: Path
) -> None:
    targets = [target for _, target in scene.targets if target != "/robots.txt"]
    lists = {each for each in targets if each.split("?")[0] == targets[-1].split("?")[0]}
    if len(lists) < 2:  # the last was a record
        lists = {target for target in targets if "before=" in target}
    if scene.source == "metaculus":  # its lists end with an empty page
        lists = {target for target in targets if "&offset=12&" in target}
    if scene.source == "kalshi":
        lists = {target for target in targets if "cursor=" in target}
    empty = {"manifold": b"[]", "polymarket": b'{"markets": []}', "kalshi": b'{"markets": []}'}.get(
        scene.source, b'{"next": null, "previous": null, "results": []}'
    )
    scene.web.faults.append(
        Fault("status", scene.source, exactly(max(lists)), ALWAYS, 200, {}, empty)
    )
    outcome = scene.crawl(tmp_path)
    assert outcome.error is not None or outcome.manifest["status"] == "partial"
    scene.web.faults.clear()
    assert scene.crawl(tmp_path).seal.digest == scene.digest


@pytest.mark.parametrize("scene", given(QUESTIONS), indirect=True)
def test_lists_that_were_cached_before_the_month_ended_are_requested_again(
    scene: QuestionScene, tmp_path: Path
) -> None:
    load = RawCache.load
    too_old = MARCH.end - dt.timedelta(seconds=1)

    def aged(self: RawCache, request: str) -> Fetched | None:
        found = load(self, request)
        return found and dataclasses.replace(found, retrieved_at=too_old)

    assert scene.crawl(tmp_path).error is None
    for path in (tmp_path / "questions").rglob("manifest.json"):
        path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawCache, "load", aged)
        begun = len(scene.web.requests)
        assert scene.crawl(tmp_path).error is None
    requested = {target for _, _, target in scene.web.requests[begun:]}
    assert {target for _, target in scene.targets if "limit=" in target} <= requested
