import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.orchestration.makespan import MAX_RATIO, bound, drain, draw_month
from core.cells.failures import CellFailure, note_failure, stem_of_model
from core.corpus.partition import Partition
from core.gpus import Fleet, Gpu, Host
from core.month import Month
from core.settings import Settings
from core.storage.claims import Claims
from core.storage.store import Store
from instruments.backlog import CellName, backlogs_of, holes_of, list_left, read_name
from instruments.driver import Backlog, work
from instruments.losses import plan_scoring, scoring_request
from instruments.pools import pool_of
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
    served = {"kind": "api", "location": "http://127.0.0.1:1", "served_name": "a/b"}
    huge = {"name": "served", "parameters": 10**12}
    add_model(ModelEntry(**huge, **served), settings)
    assert pool_of("served", fleet_of(80, 80), settings) == "gpu"
    assert pool_of("served", fleet_of(80, 80), settings, is_asked=True) == "api"
    assert pool_of("control:xz", fleet_of(80, 80), settings) == "gpu"


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


def test_work_is_estimated_by_bytes_and_by_cells_of_before(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    sizes = {num: seal("notes", f"2024-0{num}", num=9 * num).num_bytes for num in (1, 2)}
    for name, billions in (("known", 1), ("new", 3)):
        add_model(ModelEntry(name=name, location=f"a/{name}", parameters=billions), settings)

    def backlogs() -> dict[str, Backlog]:
        return backlogs_of(["notes"], MONTHS, "run", settings)(["known", "new", "gone"])

    assert [len(each.keys) for each in backlogs().values()] == [2, 2, 2]
    first = seal("notes", "2024-01", num=9)
    path = f"losses/model=known/{first.partition.path.removeprefix('corpus/')}"
    path += f"/default-a-bc-{first.digest[:12]}-x"  # a revision may have hyphens
    record = RECORD.model_copy(update={"seconds": 50.0, "num_tokens_read": 100})
    store.write_bytes(f"{path}.json", record.to_json())
    store.write_bytes(f"{path}.parquet", b"")
    found = backlogs()
    assert len(found["known"].keys) == 1
    assert found["known"].seconds == pytest.approx(0.5 * sizes[2] / 4)
    assert found["new"].seconds == pytest.approx(3 * 0.5 * (sizes[1] + sizes[2]) / 4)


def test_a_model_that_was_refused_under_one_protocol_is_pending_under_another(
    settings: Settings, seal: Sealer
) -> None:
    """Compressors have no tokens, of which some protocols make their windows."""
    seal("notes", "2024-01")
    refused = settings.model_copy(update={"protocol": "uncheatable"})
    asked = scoring_request(["control:gzip"], None, None, ["uncheatable"], refused, run="first")
    [failure] = work(asked, refused).failures
    assert not failure.may_pass
    left = list_left(["control:gzip"], None, None, "second", refused)["control:gzip"]
    assert (len(left.failed), len(left.pending)) == (1, 0)
    left = list_left(["control:gzip"], None, None, "second", settings)["control:gzip"]
    assert (len(left.failed), len(left.pending)) == (0, 1)


def test_cells_that_failed_in_this_run_or_for_good_are_not_pending(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    seals = [seal("notes", f"2024-0{num}") for num in (1, 2, 3)]
    facts = {"cell": "c", "error": "ModelError", "attempts": 1, "failed_at": RECORD.scored_at}
    for sealed, run, may_pass in zip(
        seals, ("now", "before", "before"), (True, True, False), strict=True
    ):
        folder = sealed.partition.path.removeprefix("corpus/")
        stem = f"losses/model=control%3Agzip/{folder}/default-r-{sealed.digest[:12]}-x"
        record = CellFailure(run=run, reason="why", may_pass=may_pass, **facts)
        note_failure(store, stem, record)
    models = ["control:gzip", "control:xz"]
    left = list_left(models, None, None, "now", settings)
    assert [seal.partition for seal in left["control:gzip"].pending.values()] == [
        Partition("notes", Month("2024-02"))
    ]
    assert len(left["control:gzip"].failed) == 2
    assert len(left["control:xz"].pending) == 3
    holes = holes_of(left)
    assert holes[:2] == ["score c: why"] * 2
    assert holes[2] == "score control:gzip on notes 2024-02: no process has done it"

    broken = CellFailure(run="now", reason="no file", may_pass=True, **facts)
    note_failure(store, stem_of_model("losses", "control:xz"), broken)
    left = list_left(models, None, None, "now", settings)
    assert (left["control:xz"].pending, left["control:xz"].failed) == ({}, [broken])
    assert len(list_left(models, None, None, "later", settings)["control:xz"].pending) == 3
    note_failure(store, stem_of_model("losses", "/some/folder"), broken)
    left = list_left(["/some/folder"], None, None, "now", settings)
    assert (left["/some/folder"].name, left["/some/folder"].pending) == ("folder", {})


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("default-python-3.11-0123456789ab-x.parquet", "default"),
        ("disjoint-512-abc-0123456789ab-x.failed.json", "disjoint-512"),
        ("nosuch-abc-0123456789ab-x.parquet", None),
        ("model.failed.json", None),
    ],
)
def test_names_of_files_tell_model_protocol_and_text(name: str, protocol: str | None) -> None:
    folder = "source=s/month=2024-01"
    expected = CellName("m:1", protocol, (folder, "0123456789ab")) if protocol else None
    assert read_name(f"losses/model=m%3A1/{folder}/{name}") == expected
    assert read_name(f"answers/model=m%3A1/{folder}/{name}") is None


def test_a_protocol_that_does_not_suit_a_model_leaves_nothing_pending(
    settings: Settings, seal: Sealer
) -> None:
    seal("notes", "2024-01")
    own = settings.model_copy(update={"protocol": "chat"})
    request = scoring_request(["control:gzip"], None, None, [own.protocol], own, run="before")
    assert work(request, own).failures
    [left] = list_left(["control:gzip"], None, None, "now", own).values()
    assert (left.pending, len(left.failed)) == ({}, 1)


def test_claimed_cells_are_pending_and_not_free(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    for month in ("2024-01", "2024-02"):
        seal("notes", month)
    plan = plan_scoring("control:gzip", ["default"], None, None, settings)
    with Claims(store).hold([plan.pending[0].path]):
        [left] = list_left(["control:gzip"], None, None, "run", settings).values()
        assert (len(left.pending), len(left.claimed)) == (2, 1)
        [backlog] = backlogs_of(None, None, "run", settings)(["control:gzip"]).values()
        assert len(backlog.keys) == 1


def test_a_process_does_the_other_cells_first_and_then_waits(
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
    request = scoring_request(["control:zstd"], None, None, ["default"], settings)
    claimed = planned.pending[0].path
    with Claims(store).hold([claimed]), ThreadPoolExecutor() as pool:  # as another process does
        [claim] = store.list("claims/*.json")
        future = pool.submit(work, request, settings)
        while len(plan()) > 1 and not future.done():
            time.sleep(0.05)
        assert plan() == ["2024-02"] and not future.done(), "it waits for the last one"
        store.delete(claim)
        assert future.result().num_cells == 3
    assert plan() == []


@pytest.mark.parametrize("num_whole", [0, 2])
def test_a_month_on_eight_gpus_takes_hardly_longer_than_it_must(num_whole: int) -> None:
    months = [draw_month(seed, num_whole, is_first=False) for seed in range(3)]
    assert all(drain(month) <= MAX_RATIO * bound(month) for month in months)
