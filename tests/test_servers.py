"""The Prefect server that tests run: it keeps what it was told when it is killed."""

from __future__ import annotations

import signal

import requests

from .servers import PrefectServer


def test_a_killed_server_comes_back_with_what_it_knew(prefect_server: PrefectServer) -> None:
    pool = {"name": "kept", "type": "process"}
    assert requests.post(f"{prefect_server.url}/work_pools/", json=pool, timeout=30).ok
    prefect_server.stop(signal.SIGKILL)
    prefect_server.start()
    assert requests.get(f"{prefect_server.url}/work_pools/kept", timeout=30).ok
