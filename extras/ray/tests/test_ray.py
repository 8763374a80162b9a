import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import Partition
from core.errors import OrchestrationError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from flows.work import compute, work
from instruments.landing import land_losses
from instruments.losses import scoring_request
from instruments.written import find_unlanded
from models.catalogue import find_model
from tests.flows.support.deployed import api
from tests.forks import run_process
from tests.servers import PrefectServer

CLUSTER = Path(__file__).with_name("support") / "two_nodes.py"
MONTHS = [f"2024-0{number}" for number in range(1, 7)]
CONTROL = "control:zstd"
# In a process that Ray may change as it likes. Ray's processes tell of what they ran ten times a
# second here, and those that end before have told nothing: the driver goes some seconds later.
DRIVER = """
import sys, time
import ray
from flows.work import work
leave = ray.shutdown
ray.shutdown = lambda: (time.sleep(5), leave())
state = work(models=[sys.argv[1]], return_state=True)
print(state.name, state.message)
"""


class RayCluster:
    def __init__(self, process: subprocess.Popen[str], environment: dict[str, str]) -> None:
        assert process.stdin and process.stdout
        self._feed = process.stdin
        self._says = process.stdout
        self._environment = environment
        self.address = self._says.readline().strip()

    def score(self, home: Path, model: Path) -> str:
        settings = {"TIDEMARK_HOME": str(home), "TIDEMARK_RAY_ADDRESS": self.address}
        environment = {**self._environment, **settings}
        done = run_process(sys.executable, "-c", DRIVER, model, env=environment)
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout.splitlines()[-1]

    def end(self) -> list[dict[str, Any]]:
        self._feed.write("\n")
        self._feed.flush()
        events = json.loads(self._says.readline())
        cells = [each for each in events if each["cat"] == "task::compute_cells"]
        assert cells, {(each["cat"], each["name"]) for each in events}
        return sorted(cells, key=lambda cell: float(cell["ts"]))


@pytest.fixture(scope="module")
def cluster(prefect_server: PrefectServer) -> Iterator[RayCluster]:
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_events_report_interval_ms": "100"}
    environment = {**prefect_server.environment, **settings}
    with subprocess.Popen(
        [sys.executable, CLUSTER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield RayCluster(process, environment)
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def sealed(tmp_path: Path) -> Callable[[str], Settings]:
    texts = tmp_path / "texts.json"
    texts.write_text(
        json.dumps(["The tide leaves a mark on the sand. " * 400, "Ebb and flow. " * 30])
    )

    def seal(name: str) -> Settings:
        settings = Settings(home=str(tmp_path / name), device="cpu", in_flight=1)
        for month in MONTHS:
            partition = Partition("notes", Month(month))
            import_texts(texts, partition, Store(settings.home), ImportOptions())
        return settings

    return seal


@pytest.mark.slow
def test_two_nodes_write_what_one_thread_writes(
    prefect_server: PrefectServer,
    cluster: RayCluster,
    sealed: Callable[[str], Settings],
    tiny_model: Path,
    dump: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = sealed("alone")
    together = sealed("together")
    monkeypatch.setattr("flows.work.worker_settings", lambda: alone)
    complete = f"Completed {len(MONTHS)} cells complete, 0 items"
    with api(prefect_server):
        state = work(models=[str(tiny_model)], return_state=True)
        assert f"{state.name} {state.message}" == complete
    home = Path(together.home)
    assert cluster.score(home, tiny_model) == complete
    for settings in (alone, together):
        for entry, cells in find_unlanded([str(tiny_model)], settings).cells:
            assert len(land_losses(entry, cells, settings)) == len(MONTHS)
    assert dump(home) == dump(Path(alone.home))
    scored = cluster.end()
    assert len(scored) == len(MONTHS)
    assert {cell["pid"] for cell in scored} == {"127.0.0.2", "127.0.0.3"}
    for node in ("127.0.0.2", "127.0.0.3"):
        cells = [cell for cell in scored if cell["pid"] == node]
        assert len({cell["tid"] for cell in cells}) == 1  # which has loaded the weights
        ends = ((each["ts"] + each["dur"], after["ts"]) for each, after in pairwise(cells))
        assert all(end <= begin for end, begin in ends)  # one GPU


@pytest.mark.parametrize(
    ("model", "resources", "options", "slots"),
    [
        ("gpt2", {"CPU": 8.0, "GPU": 2.0}, {"num_gpus": 1, "max_calls": 0}, 2),
        ("gpt2", {"CPU": 8.0}, {"num_cpus": 1}, 8),
        (CONTROL, {"CPU": 8.0, "GPU": 2.0}, {"num_cpus": 1}, 8),
    ],
)
def test_a_cell_takes_a_gpu_where_there_is_one(
    settings: Settings, model: str, resources: Any, options: Any, slots: int
) -> None:
    from extras.ray.cluster import share_of  # Ray takes a second, and each process imports tests

    share = share_of(find_model(model, settings), resources)
    assert (share.options, share.slots) == (options, slots)


def test_a_cluster_without_a_slot_is_refused(settings: Settings) -> None:
    from extras.ray.cluster import share_of

    with pytest.raises(OrchestrationError, match="no CPU that control:zstd"):
        share_of(find_model(CONTROL, settings), {"GPU": 2.0})


def on_cluster(settings: Settings) -> None:
    request = scoring_request([CONTROL], None, None, ["default"], settings)
    compute(request, "score", None, None, settings)


@pytest.mark.smoke
@pytest.mark.parametrize("address", ["127.0.0.2:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_away_is_a_hole_at_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    away = settings.model_copy(update={"ray_address": address})
    with pytest.raises(OrchestrationError, match="PREFECT_API_URL is not set"):
        on_cluster(away)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    with pytest.raises(OrchestrationError, match=f"TIDEMARK_RAY_ADDRESS={address} .*refused"):
        on_cluster(away)


def test_ray_that_is_not_installed_is_a_hole(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "extras.ray.scoring", None)  # as without its packages
    there = settings.model_copy(update={"ray_address": "auto"})
    with pytest.raises(OrchestrationError, match=r"pip install .*\.\[ray\]"):
        on_cluster(there)
