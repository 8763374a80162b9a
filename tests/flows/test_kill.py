import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from simulator.server import Web
from tests.forks import Forks, forking
from tests.tiers import needs_extra
from warehouse.database.schema import SNAPSHOT
from warehouse.database.writer import connected, locked
from warehouse.read.publish import check_snapshot

TRIALS = 4
SERVE = "from tests.flows.support.nursery import serve_commands; serve_commands()"


class Nursery:
    def __init__(self, forks: Forks, log: Path) -> None:
        self._forks, self._log = forks, log

    def run(
        self, *arguments: str | Path, kill_after: float | None = None, **environment: str | Path
    ) -> int:
        """Return the exit code; -9 where the kill came before the end."""
        job = {
            "arguments": [str(argument) for argument in arguments],
            "environment": {name: str(value) for name, value in environment.items()},
            "log": str(self._log),
        }
        return self._forks.run(job, kill_after)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")[-3000:]


@pytest.fixture(scope="module")
def nursery(web: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    folder = tmp_path_factory.mktemp("nursery")
    sites = {f"TIDEMARK_SITES__{key.upper()}": url for key, url in web.urls.items()}
    usual = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}
    quick = {"TIDEMARK_REQUEST_INTERVAL_S": "0", "TIDEMARK_DEVICE": "cpu"}
    scratch = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_LOGGING_LEVEL": "WARNING"}
    with forking(SERVE, {**usual, **sites, **quick, **scratch}, folder) as forks:
        yield Nursery(forks, folder / "log")


@pytest.fixture
def trials(nursery: Nursery, tmp_path: Path, dump: Any) -> Callable[..., None]:
    def trials(
        first: list[str | Path],
        *others: list[str | Path],
        start: Path | None = None,
        is_new: bool = False,
    ) -> None:
        def home(name: str) -> Path:
            folder = tmp_path / name
            shutil.copytree(start, folder) if start else folder.mkdir()
            if not is_new:  # making the database takes seconds
                with locked(settings := Settings(home=str(folder))), connected(settings):
                    pass
            return folder

        def finish(folder: Path) -> None:
            for command in (first, *others):
                assert nursery.run(*command, TIDEMARK_HOME=folder) == 0, nursery.log()

        undisturbed = home("undisturbed")
        began_at = time.monotonic()
        assert nursery.run(*first, TIDEMARK_HOME=undisturbed) == 0, nursery.log()
        duration = time.monotonic() - began_at  # the first is the slowest
        finish(undisturbed)
        expected = dump(undisturbed)
        assert all(expected[table] for table in ("chunk_losses", "landed_cells", "cell_replicates"))
        delays = random.Random(2)  # so that a trial that failed can be repeated
        killed = 0
        for trial in range(TRIALS):
            folder = home(f"trial-{trial}")
            # The last first: one that comes after the end says how long a run takes now.
            moment = duration * (TRIALS - 1 - trial + delays.random()) / TRIALS
            if nursery.run(*first, kill_after=moment, TIDEMARK_HOME=folder) == -9:
                killed += 1
            else:  # it ended before its time, so the next kills come earlier
                duration = moment
            if (folder / SNAPSHOT).exists():
                check_snapshot(folder / SNAPSHOT)
            finish(folder)
            assert dump(folder) == expected, f"trial {trial}, killed after {moment:.3f} s"
            assert not list(folder.glob(".tmp-*")), "a half-written snapshot stays for ever"
            shutil.rmtree(folder)
        assert killed >= TRIALS // 3, f"only {killed} kills came before the end"

    return trials


@pytest.mark.slow
@needs_extra("arxiv")
def test_crawl(trials: Callable[..., None]) -> None:
    crawl = ["crawl", "--month", "2024-01", "--to", "2024-02"]
    for source in ("wikipedia_new", "hackernews", "arxiv"):  # git has kills of its own
        crawl += ["--source", source]
    trials(crawl, ["score", "--model", "control:zstd"])


@pytest.mark.slow
def test_score(trials: Callable[..., None], nursery: Nursery, tiny_model: Path, home: Path) -> None:
    sources = ("-s", "wikipedia_new", "-s", "hackernews")
    crawl = ["crawl", "--month", "2024-01", "--to", "2024-03", *sources]
    assert nursery.run(*crawl, TIDEMARK_HOME=home) == 0, nursery.log()
    trials(["score", "--model", tiny_model, "--model", "control:zstd"], start=home)


@pytest.mark.slow
def test_land(trials: Callable[..., None], losses_file: Callable[..., Path]) -> None:
    land: list[str | Path] = [
        "land",
        "losses",
        losses_file("foreign", 200_000),
        losses_file("other", 1000),
    ]
    trials(land, is_new=True)
