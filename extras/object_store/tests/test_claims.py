"""Claims on an object store do what those on a disk do."""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.storage.claims import Claims
from core.storage.store import Store
from tests.core.storage.test_claims import (
    NAMES,
    claimed_by,
    files,
    test_a_claim_is_renewed,  # noqa: F401
    test_a_file_that_is_no_claim_is_named,  # noqa: F401
    test_a_machine_with_a_beat_is_alive,  # noqa: F401
    test_a_machine_without_a_beat_is_dead,  # noqa: F401
    test_a_process_of_this_host_is_known_to_be_gone_at_once,  # noqa: F401
    test_time_in_which_nobody_looked_does_not_count,  # noqa: F401
    test_who_has_it_keeps_the_others_out,  # noqa: F401
    test_who_waits_goes_on_when_it_is_free_or_done,  # noqa: F401
)


@pytest.fixture
def any_store(s3_options: dict[str, Any], tmp_path: Path) -> Callable[[], Store]:
    return lambda: Store(f"s3://bucket/{tmp_path.name}", **s3_options)


@pytest.mark.slow
def test_many_writers_of_an_object_store_do_everything_once(
    s3_options: dict[str, Any], tmp_path: Path
) -> None:
    """Object stores have no locks; all writers start at once, after a machine died."""
    url = f"s3://bucket/{tmp_path.name}"
    inside = set[str]()
    done = list[str]()
    for name in NAMES[:4]:
        claimed_by(Store(url, **s3_options), name)
    barrier = threading.Barrier(4)
    failures = list[BaseException]()

    def run() -> None:
        store = Store(url, **s3_options)
        mine = Claims(store, beat_s=0.2, dead_after_s=0.5)
        barrier.wait()
        for name in NAMES[:6]:
            while not store.exists(name):
                with mine.hold([name]) as held:
                    if held and not store.exists(name):
                        assert name not in inside
                        inside.add(name)
                        time.sleep(0.05)
                        done.append(name)
                        inside.remove(name)
                        store.write_bytes(name, b"")
                        continue
                mine.wait(name, is_done=partial(store.exists, name))

    def guarded() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(done) == NAMES[:6]
    assert files(Store(url, **s3_options)) == []
