"""What a Prefect server says of the runs: asked over HTTP, because importing Prefect takes seconds.

Only what files cannot tell is asked: what waits, what is late, what is next, and which workers are
there. A server that does not answer costs a few seconds, and the rest is still shown.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from core.settings import prefect_access, prefect_server, without_password

TIMEOUT_S = 4.0  # of a whole question; connecting and each answer
_RECENT = dt.timedelta(days=7)  # failures of which are told
_MAX_LISTED = 10
_UNDER_WAY = ("RUNNING", "PENDING", "CANCELLING", "PAUSED")
_BROKEN = ("FAILED", "CRASHED")


@dataclass(frozen=True)
class ServerStatus:
    """What the server knows.

    Attributes:
        address: of its API.
        problem: why it tells nothing; empty if it does.
        under_way: name, deployment, state and start of flow runs that have begun.
        broken: the same of those that failed or crashed in the last week, the newest first.
        late: how many scheduled runs wait for a worker, by deployment.
        scheduled: the next run of each deployment that has one, and when.
        workers: name and state of each worker, by pool; a pool without one has an empty list.
    """

    address: str
    problem: str = ""
    under_way: tuple[tuple[str, str, str, str], ...] = ()
    broken: tuple[tuple[str, str, str, str], ...] = ()
    late: tuple[tuple[str, int], ...] = ()
    scheduled: tuple[tuple[str, str], ...] = ()
    workers: tuple[tuple[str, tuple[str, ...]], ...] = ()


def ask_server() -> ServerStatus | None:
    """Ask the server that is configured; None where there is none."""
    address = prefect_server()
    if address is None:
        return None
    try:
        return _Questions(address.rstrip("/")).answers()
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        return ServerStatus(
            without_password(address), problem=f"does not answer as it should: {_why(error)}"
        )


def _why(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return f"nothing for {TIMEOUT_S:g} s"
    if isinstance(error, requests.ConnectionError):
        return "it cannot be reached"
    if isinstance(error, requests.HTTPError) and error.response.status_code in (401, 403):
        return "it wants a user and password (PREFECT_API_AUTH_STRING)"
    return str(error)


class _Questions:
    def __init__(self, address: str) -> None:
        self._address = address
        self._session = requests.Session()
        headers, self._session.verify = prefect_access()
        # A password in ~/.netrc must not take the place of ours.
        self._session.trust_env = False
        self._session.headers.update(headers)

    def answers(self) -> ServerStatus:
        names = {each["id"]: each["name"] for each in self._filter("deployments", {})}
        now = dt.datetime.now(dt.UTC)
        under_way = self._runs({"state": {"type": {"any_": _UNDER_WAY}}}, "START_TIME_DESC")
        recent = {"after_": (now - _RECENT).isoformat()}
        broken = self._runs(
            {"state": {"type": {"any_": _BROKEN}}, "expected_start_time": recent},
            "EXPECTED_START_TIME_DESC",
        )
        scheduled = self._runs(
            {"state": {"type": {"any_": ("SCHEDULED",)}}}, "EXPECTED_START_TIME_ASC"
        )
        next_runs: dict[str, str] = {}
        late: Counter[str] = Counter()
        for run in scheduled:
            deployment = names.get(run["deployment_id"], run["name"])
            if run["state_name"] == "Late" or run["expected_start_time"] < now.isoformat():
                late[deployment] += 1
            else:
                next_runs.setdefault(deployment, run["expected_start_time"])
        return ServerStatus(
            address=without_password(self._address),
            under_way=tuple(_line(run, names) for run in under_way),
            broken=tuple(_line(run, names) for run in broken[:_MAX_LISTED]),
            late=tuple(late.items()),
            scheduled=tuple(next_runs.items()),
            workers=tuple(
                (pool["name"], self._workers(pool["name"]))
                for pool in self._filter("work_pools", {})
            ),
        )

    def _runs(self, flow_runs: dict[str, Any], sort: str) -> list[dict[str, Any]]:
        # Subflows belong to a run that is listed itself.
        top = {"parent_task_run_id": {"is_null_": True}}
        return self._filter("flow_runs", {"flow_runs": {**flow_runs, **top}, "sort": sort})

    def _workers(self, pool: str) -> tuple[str, ...]:
        found = self._filter(f"work_pools/{quote(pool, safe='')}/workers", {})
        return tuple(f"{each['name']} {each['status'].lower()}" for each in found)

    def _filter(self, what: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        url = f"{self._address}/{what}/filter"
        answer = self._session.post(url, json={"limit": 200, **body}, timeout=TIMEOUT_S)
        answer.raise_for_status()
        found: list[dict[str, Any]] = answer.json()
        return found


def _line(run: dict[str, Any], names: dict[str, str]) -> tuple[str, str, str, str]:
    start = run["start_time"] or run["expected_start_time"] or ""
    return run["name"], names.get(run["deployment_id"], ""), run["state_name"], start
