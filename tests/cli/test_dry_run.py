import re
from collections.abc import Callable
from pathlib import Path

import pytest

from core.progress import duration
from core.storage.store import Store
from simulator.server import Web
from tests.commands import Ran

SOURCES = ["-shackernews", "-swikipedia_new"]
OPTIONS = ["--from", "2024-01", "--to", "2024-02", *SOURCES, "-mcontrol:zstd"]


@pytest.mark.slow
def test_the_plan_is_what_the_run_does(
    tidemark: Callable[..., Ran], sites: Web, home: Path
) -> None:
    asked = len(sites.requests)
    ran = tidemark("backfill", *OPTIONS, "--dry-run")
    assert ran.code == 0 and ran.err == ""
    total = "total: 4 partitions to crawl, 4 cells to score; about 0 s to score, one cell at a time"
    assert f"{total}; not known: control:zstd" in ran.out
    assert re.search(r"hackernews +│ missing +│ 2024-01 … 2024-02 +│ 2 ", ran.out)
    assert len(sites.requests) == asked and not home.exists()

    former = ["--month", "2024-01", "-shackernews", "-mcontrol:zstd"]
    assert tidemark("run", *former).code == 0
    ran = tidemark("backfill", *OPTIONS, "-mcontrol:gzip", "--dry-run")
    assert re.search(r"control:zstd +│ +1 +│ +3 +│ +\d+ s", ran.out), ran.out
    assert re.search(r"control:gzip +│ +0 +│ +4 +│ +not known", ran.out), ran.out
    assert "total: 3 partitions to crawl, 7 cells to score" in ran.out
    assert tidemark("backfill", *OPTIONS).code == 0
    assert len(Store(str(home)).list("losses/*/*/*/*.parquet")) == 4
    assert (
        "total: 0 partitions to crawl, 0 cells to score; about 0 s"
        in tidemark("backfill", *OPTIONS, "--dry-run").out
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (99, "99 s"), (200, "3 min 20 s"), (3599, "59 min 59 s"), (18_600, "5 h 10 min"),
     (187_200, "2 d 4 h"), (None, "not known")],
)  # fmt: skip
def test_times_are_said_as_people_do(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said
