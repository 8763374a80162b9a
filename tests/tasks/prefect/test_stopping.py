import signal
import threading
import time
from pathlib import Path

import pytest
from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from core.storage.store import Store
from instruments.running.stopping import Stopped, go_on, is_written, rest, stop_with_flow
from tasks.prefect.fan_out import fan_out

pytestmark = pytest.mark.usefixtures("prefect_api")
ENDS: list[str] = []
LONG_S = 600.0


@task(cache_policy=NO_CACHE, persist_result=False)
def write_slowly(store: Store) -> None:
    deadline = time.monotonic() + LONG_S
    with store.writing("losses/slow.parquet") as staged:
        staged.path.write_bytes(b"half")
        main = threading.main_thread().ident
        assert main
        time.sleep(1)  # by now it waits for this task
        signal.pthread_kill(main, signal.SIGUSR1)
        while time.monotonic() < deadline:
            go_on()
            time.sleep(0.01)
        ENDS.append("not interrupted")


@flow
def slow(store: Store) -> None:
    with stop_with_flow():
        list(fan_out(write_slowly, [("slow", {"store": store})], step=None))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_interrupted_flow_run_leaves_nothing_half_written(store: Store) -> None:
    # A signal of its own: libraries change what SIGINT does to a thread that waits.
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    ENDS.clear()
    try:
        with pytest.raises(KeyboardInterrupt):
            slow(store)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ENDS == []
    assert [path for path in Path(store.root).rglob("*") if path.is_file()] == []


def test_who_waits_is_interrupted_too(store: Store) -> None:
    try:
        with pytest.raises(KeyboardInterrupt), stop_with_flow():
            raise KeyboardInterrupt
        with pytest.raises(Stopped):  # before another try
            rest(LONG_S)
        with pytest.raises(Stopped):  # for a cell that another process scores
            is_written(store, "losses/of-another.parquet")
    finally:
        with stop_with_flow():
            pass
    rest(0.01)


def test_who_is_not_interrupted_goes_on(store: Store) -> None:
    with pytest.raises(ValueError, match="an error"), stop_with_flow():
        raise ValueError("an error")
    go_on()
