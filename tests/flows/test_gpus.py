import datetime as dt
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest
import torch
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.runtime import flow_run
from transformers import LlamaConfig, LlamaForCausalLM

from core.cells.losses import list_losses
from core.cells.record import CellRecord
from core.corpus.partition import Seal
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from deployments.deploy import deploy
from flows.rounds import Rounds
from flows.run import ScoringLeft
from instruments.backlog import list_left
from instruments.planning import Request
from models.catalogue import ModelEntry, add_model
from tests.commands import TIDEMARK
from tests.flows.support.deployed import api, children_of
from tests.loopback import free_port, wait_for
from tests.servers import PrefectServer

SMALL = ["small-1", "small-2", "small-3"]
MONTHS = (Month("2024-01"), Month("2024-02"))


@contextmanager
def workers(server: PrefectServer, home: str) -> Iterator[Path]:
    """Run `tidemark worker` with two simulated GPUs of 1 GiB, on the CPU."""
    environment = {
        **server.environment,
        "TIDEMARK_HOME": home,
        "TIDEMARK_TEST_GPUS": "2x1",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
    }
    log = server.folder / "workers.log"
    with log.open("ab") as file:
        process = psutil.Popen(
            [TIDEMARK, "worker", "--health-port", str(free_port())],
            env=environment, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield log
    finally:
        below = process.children(recursive=True)
        process.terminate()
        process.wait(120)
        assert not [each for each in below if each.is_running() and each.status() != "zombie"]


@flow(name="watching")
def watch(request: Request, settings: Settings) -> list[str]:
    parameters = {"sources": list(request.sources), "run": "gpus"}
    left = ScoringLeft(request, "gpus", settings, always=False)
    rounds = Rounds(left, parameters, settings)
    rounds.drain(lambda: True)
    return [child.work_pool_name or "" for child in children_of_this()]


def children_of_this() -> list[FlowRun]:
    with get_client(sync_client=True) as client:
        return children_of(client, client.read_flow_run(UUID(flow_run.id)))


def times_of(store: Store, model: str) -> list[tuple[dt.datetime, dt.datetime]]:
    found = []
    for path in list_losses(store, model):
        json = store.read_bytes(f"{path.removesuffix('.parquet')}.json")
        record = CellRecord.model_validate_json(json)
        seconds = dt.timedelta(seconds=record.seconds)
        found.append((record.scored_at - seconds, record.scored_at))
    return found


def with_own_weights(model: Path, folder: Path, seed: int) -> Path:
    """Copy a model with other weights: losses of equal weights are copied, not scored again."""
    shutil.copytree(model, folder)
    torch.manual_seed(seed)
    LlamaForCausalLM(LlamaConfig.from_pretrained(folder)).save_pretrained(folder)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_models_are_scored_by_workers_of_their_pools_and_never_two_on_a_gpu(
    prefect_server: PrefectServer,
    home: Path,
    tiny_model: Path,
    tmp_path: Path,
    seal: Callable[..., Seal],
) -> None:
    settings = Settings(home=str(home), watch_interval_s=2.0)
    store = Store(settings.home)
    for month in MONTHS:
        seal("notes", str(month), num=5)
    for seed, name in enumerate(("large", *SMALL)):
        parameters = 10**9 if name == "large" else 10**6
        folder = with_own_weights(tiny_model, tmp_path / name, seed)
        entry = ModelEntry(name=name, location=str(folder), parameters=parameters)
        add_model(entry, settings)
    with api(prefect_server) as client:
        deploy(prefect_server.url)
        with workers(prefect_server, settings.home) as log:
            wait_for(lambda: store.list("gpus/*.json"))
            request = Request(MONTHS, ("notes",), (*SMALL, "large"))
            pools = Counter(watch(request, settings))
        assert store.list("gpus/*.json") == []
        assert client.read_work_pool("gpu").concurrency_limit == 2
    assert set(pools) == {"gpu", "gpu-all"}, "the large model fits on no single GPU"
    assert list_left(request.models, None, None, "gpus", settings)["large"].pending == {}
    assert len(store.list("losses/*/*/*/*.parquet")) == 8, log.read_text()
    large = times_of(store, "large")
    alone = [times for name in SMALL for times in times_of(store, name)]
    assert len(alone) == 6
    assert all(end <= begin or until_ <= start
               for start, end in large for begin, until_ in alone)  # fmt: skip
