import signal
import threading
import time
from pathlib import Path

import pytest
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from core.storage.store import Store
from instruments.running.stopping import Stopped, go_on, rest, stop_with_flow
from tasks.prefect.fan_out import run_task
from tasks.prefect.server import wait_for_server
from tests.loopback import free_port

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
        run_task(write_slowly, "slow", store=store)


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


def test_who_waits_is_interrupted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"http://127.0.0.1:{free_port()}/api"
    monkeypatch.setenv("PREFECT_API_URL", address)
    away = {PREFECT_API_URL: address, PREFECT_CLIENT_MAX_RETRIES: 0}
    try:
        with pytest.raises(KeyboardInterrupt), stop_with_flow():
            raise KeyboardInterrupt
        with pytest.raises(Stopped):  # before another try
            rest(LONG_S)
        with pytest.raises(Stopped), temporary_settings(away):
            wait_for_server(LONG_S)
    finally:
        with stop_with_flow():
            pass
    rest(0.01)


def test_who_is_not_interrupted_goes_on(store: Store) -> None:
    with pytest.raises(ValueError, match="an error"), stop_with_flow():
        raise ValueError("an error")
    go_on()


def test_a_thread_that_begins_after_the_signal_is_stopped_too() -> None:
    stopped: list[Stopped] = []

    def begin() -> None:
        try:
            with stop_with_flow():
                go_on()
        except Stopped as error:
            stopped.append(error)

    late = threading.Thread(target=begin)
    try:
        with pytest.raises(KeyboardInterrupt), stop_with_flow():
            raise KeyboardInterrupt
        late.start()
        late.join()
    finally:
        with stop_with_flow():
            pass
    assert len(stopped) == 1
