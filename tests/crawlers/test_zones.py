"""Whatever zone the machine is in, the same text is of the same month."""

import datetime as dt
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlers.imports.dating import moment_of
from crawlers.text.pages import read_page
from crawlers.web.times import read_time

TESTS = Path(__file__).parent
# UTC+14, UTC+5:45, and UTC-8 or -7: one of them is in another month than UTC at any month's end.
ZONES = ("Pacific/Kiritimati", "Asia/Kathmandu", "America/Los_Angeles")
# At the start of a month in UTC; each is naive, of the zone -0000, or of a named zone.
STATED = ("2024-06-01 00:30", "Sat, 01 Jun 2024 00:30:00 -0000", "Sat, 01 Jun 2024 02:30:00 CEST")


def _run(zone: str, *arguments: str) -> str:
    command = ["env", f"TZ={zone}", sys.executable, *arguments]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 0, f"{zone}: {found.stdout[-3000:]}{found.stderr[-3000:]}"
    return found.stdout


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A function that puts this process into a time zone."""

    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def test_no_time_is_read_in_the_zone_of_the_machine(moved: Callable[[str], None]) -> None:
    instant = dt.datetime(2024, 6, 1, 0, 30, tzinfo=dt.UTC)
    for zone in ZONES:
        moved(zone)
        assert dt.datetime(2024, 6, 1).astimezone() != dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
        for text in STATED:
            assert read_time(text, dt.UTC) == instant, (zone, text)
            assert moment_of(text) == instant, (zone, text)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_the_tests_of_crawlers_pass_in_each_zone(zone: str) -> None:
    folders = ["apis", "imports", "questions", "sources", "text/test_pages.py", "web/test_times.py"]
    paths = [str(TESTS / each) for each in folders if (TESTS / each).exists()]
    own = ["-q", "-x", "-p", "no:cacheprovider", "-n", "0", "-m", "not (slow or matrix or extra)"]
    _run(zone, "-m", "pytest", *own, *paths)


def test_a_page_without_a_zone_is_of_utc() -> None:
    page = read_page("<html><meta name='date' content='2024-06-01 00:30'><article>a</article>")
    instant = dt.datetime(2024, 6, 1, 0, 30, tzinfo=dt.UTC)
    assert page.published == read_time(STATED[0], dt.UTC) == moment_of(STATED[0]) == instant
