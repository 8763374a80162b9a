from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.orchestration.makespan import (
    MAX_DRAIN_RATIO,
    MAX_RATIO,
    Simulation,
    bound,
    drain,
    draw_month,
)
from core.gpus import Fleet, Gpu, Host
from core.month import Month
from core.settings import Settings
from core.storage.claims import Claims
from core.storage.store import Store
from instruments.assignment import (
    Start,
    Work,
    choose_helped,
    estimate_work,
    may_start,
    plan_starts,
    pool_of,
)
from instruments.driver import run_plan
from instruments.losses import plan_scoring
from models.catalogue import ModelEntry, add_model
from tests.seals import Sealer
from tests.warehouse.cells import RECORD

MONTHS = [Month("2024-01"), Month("2024-02")]


def fleet_of(*gib: int, dtype: str = "auto") -> Fleet:
    gpus = tuple(
        Gpu(number=number, uuid=str(number), name="", memory_bytes=each * 2**30)
        for number, each in enumerate(gib)
    )
    return Fleet((Host(host="", gpus=gpus, dtype=dtype),))


@pytest.mark.parametrize(
    ("billions", "fleet", "pool"),
    [
        (39.0, fleet_of(80, 80), "gpu"),  # 78 GB and a tenth more are 85.8 of 85.9 GB
        (39.1, fleet_of(80, 80), "gpu-all"),
        (39.1, fleet_of(80), "gpu"),  # nobody owns several; loading tells that it does not fit
        (39.1, Fleet(), "gpu"),
        (8.0, fleet_of(80, 16), "gpu-all"),  # it must fit every worker
        (19.6, fleet_of(80, 80, dtype="float32"), "gpu-all"),
        (None, fleet_of(80, 80), "gpu"),
    ],
)
def test_a_model_goes_to_all_gpus_if_it_does_not_fit_on_one(
    billions: float | None, fleet: Fleet, pool: str, settings: Settings
) -> None:
    parameters = None if billions is None else round(billions * 1e9)
    add_model(ModelEntry(name="m", location="some/m", parameters=parameters), settings)
    assert pool_of("m", fleet, settings) == pool


def test_compressors_and_servers_need_no_gpu(settings: Settings) -> None:
    served = {"kind": "remote", "location": "http://127.0.0.1:1", "tokenizer": "a/b"}
    huge = {"name": "served", "revision": "1", "parameters": 10**12}
    add_model(ModelEntry(**huge, **served), settings)
    assert pool_of("served", fleet_of(80, 80), settings) == "gpu"
    assert pool_of("control:xz", fleet_of(80, 80), settings) == "gpu"


def test_models_behind_servers_wait_for_no_gpu() -> None:
    api = Work("api", "api", 1, 1.0)
    missing = ["big", "slow", "api"]
    assert may_start([BIG, SLOW, api], missing, set()) == ["big", "api"]
    assert may_start([BIG, SLOW, api], missing, {"big"}) == missing


def test_the_parameters_of_a_folder_are_those_of_its_files(
    settings: Settings, tiny_model: Path
) -> None:
    size = tiny_model.joinpath("model.safetensors").stat().st_size
    [host] = fleet_of(1, 1, dtype="float64").hosts
    for share, pool in ((4.0, "gpu"), (0.5, "gpu-all")):
        memory = {"memory_bytes": int(size * share)}
        gpus = tuple(gpu.model_copy(update=memory) for gpu in host.gpus)
        fleet = Fleet((host.model_copy(update={"gpus": gpus}),))
        assert pool_of(str(tiny_model), fleet, settings) == pool


BIG, SLOW = Work("big", "gpu-all", 2, 10.0), Work("slow", "gpu", 12, 100.0)
QUICK, TINY = Work("quick", "gpu", 12, 20.0), Work("tiny", "gpu", 12, 1.0)
WORKS = [TINY, QUICK, BIG, SLOW]


def test_large_models_start_first_and_slow_ones_several_times() -> None:
    starts = plan_starts(WORKS, 8)  # a GPU's share is 15.1 s, so a run does at most 7.6 s
    assert starts[:3] == [Start("big"), Start("slow"), Start("slow", 2)]
    assert [start.model for start in starts].count("slow") == 12  # it has only 12 cells
    assert [start.model for start in starts].count("quick") == 2
    assert starts.index(Start("quick")) > starts.index(Start("slow", 4))
    assert starts[-1] == Start("tiny")
    assert plan_starts(WORKS, 0) == [Start(name) for name in ("big", "slow", "quick", "tiny")]


def test_single_gpus_are_used_once_a_model_of_all_has_begun() -> None:
    names = [work.model for work in WORKS]
    assert may_start(WORKS, names, set()) == ["big"]
    assert may_start(WORKS, names, {"big"}) == names
    assert may_start(WORKS, ["tiny", "slow"], set()) == ["tiny", "slow"]


def test_a_free_gpu_helps_the_model_with_the_longest_run() -> None:
    running = [replace(work, num_runs=1) for work in WORKS]
    assert choose_helped(running, 3) == ["slow", "slow", "slow"]
    assert choose_helped(running, 5)[-1] == "quick"  # five runs of slow take 20 s each
    assert choose_helped(running, 0) == choose_helped(WORKS, 3) == []
    last = Work("slow", "gpu", 1, 9.0, num_runs=1)  # its cell is under way
    assert choose_helped([last], 3) == []
    assert choose_helped([replace(BIG, num_runs=1)], 3) == []


def test_work_is_estimated_by_bytes_and_by_cells_of_before(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    sizes = {num: seal("notes", f"2024-0{num}", num=9 * num).num_bytes for num in (1, 2)}
    for name, billions in (("known", 1), ("new", 3)):
        add_model(ModelEntry(name=name, location=f"a/{name}", parameters=billions), settings)

    def works() -> list[Work]:
        return estimate_work(["known", "new", "gone"], ["notes"], MONTHS, fleet_of(80), settings)

    assert [work.num_left for work in works()] == [2, 2, 0]
    first = seal("notes", "2024-01", num=9)
    path = f"losses/model=known/{first.partition.path.removeprefix('corpus/')}"
    path += f"/default-abc-{first.digest[:12]}-x"
    record = RECORD.model_copy(update={"seconds": 50.0, "num_tokens_read": 100})
    store.write_bytes(f"{path}.json", record.to_json())
    store.write_bytes(f"{path}.parquet", b"")
    known, new, gone = works()
    assert known.num_left == 1
    assert known.seconds == pytest.approx(0.5 * sizes[2] / 4)
    assert new.seconds == pytest.approx(3 * 0.5 * (sizes[1] + sizes[2]) / 4)
    assert (gone.num_left, gone.seconds) == (0, 0.0)


def test_two_runs_of_a_model_share_its_cells_and_the_helper_does_not_wait(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    for month, num in (("2024-01", 1), ("2024-02", 5), ("2024-03", 3)):
        seal("notes", month, num=num)

    def plan() -> list[str]:
        found = plan_scoring("control:zstd", ["default"], None, None, settings)
        assert not found.pending or found.groups[0] == (found.pending[0],)
        return [str(cell.partition.month) for cell in found.pending]

    assert plan() == ["2024-02", "2024-03", "2024-01"], "the largest first"
    planned = plan_scoring("control:zstd", ["default"], None, None, settings)
    with Claims(store).hold([planned.pending[0].path]):  # as another run does
        assert run_plan(planned, settings, waits=False).num_cells == 2
    assert plan() == ["2024-02"]
    assert run_plan(planned, settings).num_cells == 3
    assert plan() == []


@pytest.mark.parametrize("num_whole", [0, 2])
def test_a_month_on_eight_gpus_takes_hardly_longer_than_it_must(num_whole: int) -> None:
    months = [draw_month(seed, num_whole, is_first=False) for seed in range(3)]
    assert all(Simulation(month).makespan() <= MAX_RATIO * bound(month) for month in months)
    assert all(drain(month) <= MAX_DRAIN_RATIO * bound(month) for month in months)
