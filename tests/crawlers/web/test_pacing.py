import contextlib
import json
import os
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import SourceUnavailable, StorageError
from crawlers.web import pacing
from crawlers.web.pacing import Pace, TryAgain
from simulator.server import Request, Response, serve_sites
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.web.conftest import PageSite
from tests.forks import Forks, forking
from tests.loopback import wait_for


def failing_wait_s(pace: Pace) -> float:
    with pytest.raises(TryAgain), pace.turn("h", 0.0) as waited_s:
        raise TryAgain("failed")
    return waited_s


@pytest.fixture
def pace(tmp_path: Path, clock: SimulatedTime) -> Pace:
    return Pace(tmp_path / "pace")


def test_pauses_double_and_a_success_ends_them(pace: Pace) -> None:
    for base_s in (0, 2, 4, 8):
        assert 0.5 * base_s <= failing_wait_s(pace) <= 1.5 * base_s + 0.1
    with pace.turn("h", 0.0) as waited_s:
        assert waited_s >= 7.9  # half of 16, at the least
    assert failing_wait_s(pace) < 0.1
    assert failing_wait_s(pace) <= 3.1  # it would be 16 at least


def test_the_interval_is_from_start_to_start(pace: Pace, clock: SimulatedTime) -> None:
    with pace.turn("h", 30):
        clock.sleep(25)
    with pace.turn("h", 30) as waited_s:
        assert waited_s == pytest.approx(5, abs=0.1)


def test_an_unending_row_of_failures_asks_for_a_bearable_pause() -> None:
    assert pacing._pause_s(TryAgain("failed"), 10_000) <= 1.5 * 64


def test_pauses_are_not_in_step() -> None:
    assert len({pacing._pause_s(TryAgain("failed"), 3) for _ in range(20)}) == 20


def test_a_pause_that_is_too_long_is_refused_without_waiting(
    pace: Pace, tmp_path: Path, clock: SimulatedTime
) -> None:
    with pytest.raises(TryAgain), pace.turn("slow.example", 0.0):
        raise TryAgain("asked for it", pacing.MAX_WAIT_S + 5)
    refusal = r"slow\.example asks for a pause of 60\d s"
    for each in (pace, Pace(tmp_path / "pace")):  # a later process knows it, too
        with pytest.raises(SourceUnavailable, match=refusal), each.turn("slow.example", 0.0):
            pytest.fail("it is not our turn")
    assert clock.slept_s < 1


def test_a_pause_of_a_thousand_years_is_forgotten_after_a_day(pace: Pace, tmp_path: Path) -> None:
    with pytest.raises(TryAgain), pace.turn("h", 0.0):
        raise TryAgain("asked for it", float("inf"))
    record = read_record(tmp_path)
    assert record["ready"] - record["written"] == pytest.approx(86400, abs=5)


def read_record(folder: Path) -> dict[str, float]:
    record: dict[str, float] = json.loads((folder / "pace" / "h.json").read_text())
    return record


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"[]", b"7", b"null", b'{"written": "x"}', b'{"written": 1, "more": 2}',
        b"\xff\xfe", b"[" * 100_000,
        b'{"written": NaN}', b'{"written": 1, "started": 2}', b'{"written": 1, "ready": 1e300}',
        b'{"written": 1, "ready": NaN}', b'{"written": 1, "ready": Infinity}',
        b'{"written": 1, "failures": -1}', b'{"written": 1, "failures": 0.5}',
        b'{"written": 1, "started": "1"}',
    ],
)  # fmt: skip
def test_a_damaged_record_costs_an_interval(pace: Pace, tmp_path: Path, damage: bytes) -> None:
    """The time of the last request is unknown, so it may have been just now."""
    (tmp_path / "pace").mkdir()
    (tmp_path / "pace" / "h.json").write_bytes(damage)
    for interval_s in (20, 0):
        with pace.turn("h", interval_s) as waited_s:
            assert waited_s == pytest.approx(interval_s, abs=0.1)


@pytest.mark.parametrize("back_s", [3600.0, 86400.0 * 400])
def test_a_clock_that_is_set_back_changes_no_distance(
    pace: Pace, clock: SimulatedTime, back_s: float
) -> None:
    with pytest.raises(TryAgain), pace.turn("h", 0.0):
        raise TryAgain("asked for it", 60)
    clock.sleep(-back_s)
    for expected in (60, 30):
        with pace.turn("h", 30) as waited_s:
            assert waited_s == pytest.approx(expected, abs=0.1)


def test_a_host_that_others_keep_is_given_up(
    pace: Pace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "LOCK_WAIT_S", 0.2)
    says = "other processes have kept h busy for 0 s"
    with (
        pace.turn("h", 0.0),
        pytest.raises(SourceUnavailable, match=says),
        Pace(tmp_path / "pace").turn("h", 0.0),
    ):
        pytest.fail("it is not our turn")
    with pace.turn("h", 0.0):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "pace").write_text("in the way")
    with pytest.raises(StorageError, match="pace"), Pace(tmp_path / "pace").turn("h", 0.0):
        pytest.fail("it is not our turn")


def test_with_a_turnstile_a_turn_lasts_until_the_host_may_be_asked_again(
    tmp_path: Path, clock: SimulatedTime
) -> None:
    held: list[tuple[str, float]] = []

    @contextlib.contextmanager
    def turnstile(host: str) -> Iterator[None]:
        started = clock.time()
        try:
            yield
        finally:
            held.append((host, round(clock.time() - started)))

    pace = Pace(tmp_path / "pace", turnstile)
    with pace.turn("h", 30):
        pass
    for pause_s in (50, pacing.MAX_WAIT_S + 5):  # of the latter, the others will be told
        with pytest.raises(TryAgain), pace.turn("h", 0.0):
            raise TryAgain("asked for it", pause_s)
    assert held == [("h", 30), ("h", 50), ("h", 0)]


_ASKS = """
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from tests.forks import serve

def ask(job):
    home, interval_s, first, last, *urls = job
    settings = Settings(home=home, sites={str(n): url for n, url in enumerate(urls)})
    fetcher = Fetcher(settings, settings.sites, interval_s, shares_pace=len(urls) > 1)
    for number in range(first, last):
        fetcher.get(str(number % len(urls)), f"/page/{number}")

serve(ask)
"""


class SlowSite(PageSite):
    def __init__(self, key: str = "0") -> None:
        super().__init__(key)
        self.times: list[tuple[float, float]] = []
        self.takes_s = 0.05

    def respond(self, request: Request) -> Response:
        came = time.monotonic()
        time.sleep(self.takes_s)
        self.times.append((came, time.monotonic()))
        return Response(body=b"page")


@pytest.fixture(scope="module")
def askers() -> Iterator[tuple[Forks, Forks]]:
    """Two processes that ask sites side by side, in a fork for each job."""
    with forking(_ASKS, {}) as one, forking(_ASKS, {}) as other:
        yield one, other


def finish(*askers: Forks) -> None:
    for asker in askers:
        assert asker.wait() == 0


def distances(*sites: SlowSite) -> tuple[list[float], list[float]]:
    times = sorted(time for site in sites for time in site.times)
    pairs = list(zip(times, times[1:], strict=False))
    return [b[0] - a[0] for a, b in pairs], [b[0] - a[1] for a, b in pairs]


def keeps_distance(starts: list[float], interval_s: float) -> bool:
    """Return True if requests were sent at that distance, as seen by the site.

    If one arrives late, the next seems too near: a sum is short by the first one's lateness alone.
    Where a busy machine delays every second request, so are half of the distances.
    """
    on_time = statistics.median(starts) >= 0.5 * interval_s
    return on_time and sum(starts) >= (len(starts) - 1) * interval_s


@pytest.mark.parametrize("num_sites", [1, 2])
def test_processes_share_the_pace_of_a_host_or_of_the_sites_of_a_source(
    tmp_path: Path, num_sites: int, askers: tuple[Forks, Forks]
) -> None:
    sites = [SlowSite(str(number)) for number in range(num_sites)]
    with serve_sites(sites) as web:
        urls = [web.urls[str(number)] for number in range(num_sites)]
        for number, asker in enumerate(askers):
            asker.start([str(tmp_path), 0.25, number * 6, number * 6 + 6, *urls])
        finish(*askers)
    starts, pauses = distances(*sites)
    assert [len(site.times) for site in sites] == [12 // num_sites] * num_sites
    assert keeps_distance(starts, 0.25)
    assert min(pauses) > 0  # one request at a time


def test_nobody_is_left_waiting_for_ever(tmp_path: Path, askers: tuple[Forks, Forks]) -> None:
    """A process that asks again at once must not always be the first at the lock."""
    site = SlowSite()
    site.takes_s = 0.1
    with serve_sites([site]) as web:
        for number, asker in enumerate(askers):
            asker.start([str(tmp_path), 0.0, number * 100, number * 100 + 30, web.urls["0"]])
        finish(*askers)
        paths = [path for _, _, path in web.requests if path != "/robots.txt"]
        came = [int(path.rpartition("/")[2]) // 100 for path in paths]
    both = range(came.index(1), len(came) - came[::-1].index(0))  # while both were asking
    changes = sum(came[n] != came[n + 1] for n in both[:-1])
    assert changes >= 0.6 * len(both), came


def test_a_killed_holder_frees_the_host(tmp_path: Path, askers: tuple[Forks, Forks]) -> None:
    site = SlowSite()
    site.takes_s = 60
    with serve_sites([site]) as web:
        killed = askers[0].start([str(tmp_path), 0.0, 0, 1, web.urls["0"]])
        wait_for(lambda: any(path.startswith("/page") for _, _, path in web.requests))
        os.kill(killed, signal.SIGKILL)
        assert askers[0].wait() == -signal.SIGKILL
        site.takes_s = 0.0
        # The lock is waited for longer than this.
        askers[1].start([str(tmp_path), 0.5, 1, 4, web.urls["0"]])
        finish(askers[1])
    starts, _ = distances(site)
    assert len(starts) == 2
    assert keeps_distance(starts, 0.5)
