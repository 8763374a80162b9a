import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from core.errors import UsageError
from core.gpus import (
    Fleet,
    Gpu,
    Host,
    choose_gpus,
    hold_gpus,
    list_gpus,
    read_fleet,
    usable_gpus,
)
from core.storage.store import Store


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[Gpu]:
    monkeypatch.setenv("TIDEMARK_TEST_GPUS", "4x80")
    return list_gpus()


class Busy(Exception):
    """Raised where a test would wait."""


def give_up(_seconds: float) -> None:
    raise Busy


@contextmanager
def elsewhere(gpus: list[Gpu], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Hold GPUs in another process; it prints a line once it holds them."""
    held = [gpu.model_dump() for gpu in gpus]
    script = (
        "from pathlib import Path\nfrom core.gpus import Gpu, hold_gpus\n"
        f"with hold_gpus([Gpu(**each) for each in {held}], Path({str(folder)!r})):\n"
        "    print(flush=True)\n    input()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [("all", [0, 1, 2, 3]), ("2", [0, 1]), ("2,", [2]), ("3,0", [3, 0]), ("GPU-1, 2", [1, 2])],
)
def test_gpus_are_named_by_count_number_or_id(
    wanted: str, numbers: list[int], gpus: list[Gpu]
) -> None:
    assert [gpu.number for gpu in choose_gpus(wanted, gpus)] == numbers


@pytest.mark.parametrize("wanted", ["5", "0", "4,", "GPU-9,1", ",", "-1"])
def test_gpus_that_are_not_there_are_refused_with_those_that_are(
    wanted: str, gpus: list[Gpu]
) -> None:
    with pytest.raises(UsageError, match=r"GPUs here: 0 \(simulated, GPU-0\)"):
        choose_gpus(wanted, gpus)


@pytest.mark.parametrize(
    ("given", "uuids"),
    [
        (None, ["GPU-0", "GPU-1", "GPU-2", "GPU-3"]),
        ("", []),
        ("GPU-2", ["GPU-2"]),
        ("3,1", ["GPU-3", "GPU-1"]),
        ("1,-1,2", ["GPU-1"]),  # as CUDA reads it
        ("MIG-a", ["MIG-a"]),
    ],
)
@pytest.mark.usefixtures("gpus")
def test_a_process_uses_the_gpus_that_it_was_given(
    given: str | None, uuids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert [gpu.uuid for gpu in usable_gpus()] == uuids


def test_no_two_processes_hold_a_gpu(gpus: list[Gpu], tmp_path: Path) -> None:
    with elsewhere(gpus[:1], tmp_path) as other:
        assert other.stdout and other.stdout.readline()
        with hold_gpus(gpus[1:2], tmp_path, give_up):
            pass
        for wanted in (gpus[:1], gpus):
            with pytest.raises(Busy), hold_gpus(wanted, tmp_path, give_up):
                pass
    with hold_gpus(gpus, tmp_path, give_up):  # the other was killed, which frees its GPU
        for wanted in (gpus[:1], gpus[2:]):
            with pytest.raises(Busy), hold_gpus(wanted, tmp_path, give_up):
                pass
    with hold_gpus([], tmp_path / "none"):
        assert not (tmp_path / "none").exists()


def test_who_needs_all_gpus_is_not_overtaken(gpus: list[Gpu], tmp_path: Path) -> None:
    """While it waits for one GPU, nobody else begins on the others, which it may hold by then."""
    waits = list[float]()

    def look(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            with pytest.raises(Busy), hold_gpus(gpus[3:], tmp_path, give_up):
                pass
            first.close()

    with ExitStack() as first:
        first.enter_context(hold_gpus(gpus[2:3], tmp_path, give_up))
        with hold_gpus(gpus, tmp_path, look):
            assert waits == [1.0]
    with hold_gpus(gpus[3:], tmp_path, give_up):
        pass


def test_workers_announce_what_they_have(
    store: Store, gpus: list[Gpu], caplog: pytest.LogCaptureFixture
) -> None:
    small = Gpu(number=0, uuid="small", name="T4", memory_bytes=16 * 2**30)
    several = Host(host="here", gpus=tuple(gpus), dtype="auto")
    one = Host(host="here", gpus=(small,), dtype="float32")
    with several.announced(store), one.announced(store):
        store.write_bytes("gpus/broken.json", b"{}")
        fleet = read_fleet(store)
        assert (fleet.num_gpus, fleet.memory_bytes) == (5, 16 * 2**30)
        assert fleet.has_several
        assert "broken.json" in caplog.text
    assert read_fleet(store) == Fleet()


def test_without_a_driver_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.delenv("TIDEMARK_TEST_GPUS", raising=False)
    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    with pytest.raises(UsageError, match="the driver of NVIDIA does not answer"):
        list_gpus()
    assert usable_gpus() == []
