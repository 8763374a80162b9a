"""Status of a Prefect server, read by plain HTTP, because importing Prefect takes seconds."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import requests
from requests.utils import get_auth_from_url

from core.environment import prefect_access, prefect_server, without_password
from core.errors import OrchestrationError, UsageError
from core.json import JsonObject
from core.within import answer_within

TIMEOUT_S = 4.0  # limit for connecting, and for each wait for a part of a response
ACCESS_S = 30.0  # the same limit in ``require_access``, since a busy server may be slow
WHOLE_S = 60.0  # limit for all responses together, which may come byte by byte
_MAX_BYTES = 2**24  # maximum size of a response
_PIECE_BYTES = 2**16  # number of bytes that are read at a time
_RECENT = dt.timedelta(days=7)  # maximum age of listed failures
_MAX_LISTED = 10  # maximum number of listed failures
_PAGE = 200  # maximum number of objects per response
_UNDER_WAY = ("RUNNING", "PENDING", "CANCELLING", "PAUSED")
_BROKEN = ("FAILED", "CRASHED")
_REFUSALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


@dataclass(frozen=True)
class _Response:
    status: int
    kind: str  # MIME type
    body: bytes | None  # None if the body is too large

    def read_json(self) -> Any:
        """Return the body as JSON; raise ValueError if it is none, or too large."""
        if self.body is None:
            raise ValueError(f"more than {_MAX_BYTES:,} bytes")
        try:
            return json.loads(self.body)
        except RecursionError as error:
            raise ValueError("too deeply nested") from error


def require_access(is_needed: bool = False) -> str | None:
    """Return the configured Prefect server's address, without password, if a request succeeds.

    Return None without a configured server. Also return None if a server that is not needed
    cannot be reached.

    Raises:
        UsageError: the server refuses the password, or is no Prefect server of our version.
        OrchestrationError: the server ``is_needed`` and cannot be reached.
    """
    address = prefect_server()
    if address is None:
        return None
    server = f"the Prefect server at {without_password(address)} (PREFECT_API_URL)"
    url = f"{address.rstrip('/')}/admin/version"
    # This request needs the password, unlike Prefect's health check.
    ask = partial(_request, _session(address), "GET", url, None, ACCESS_S)
    try:
        response = answer_within(WHOLE_S, ask)
    except (requests.RequestException, TimeoutError) as error:
        if is_needed:
            raise OrchestrationError(
                f"{server} does not answer ({type(error).__name__}): see that it runs, or unset "
                "PREFECT_API_URL to run without a server"
            ) from None
        return None
    if response.status in _REFUSALS:
        raise UsageError(
            f"{server} does not let us in ({response.status}): set PREFECT_API_AUTH_STRING to "
            "what it was started with as PREFECT_SERVER_API_AUTH_STRING (user:password), here and "
            "for every worker"
        )
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise UsageError(
            f"{server} answers {response.status}: see that it is well, and that the address "
            "ends in /api"
        )
    _require_same_major(server, response)
    return without_password(address)


def _require_same_major(server: str, response: _Response) -> None:
    """Require that ``/admin/version`` returned the same major version of Prefect as ours."""
    own = version("prefect")
    try:
        found = response.read_json()
    except ValueError:
        found = None
    if not isinstance(found, str):
        raise UsageError(
            f"{server} answers with {response.kind}, not "
            "with Prefect's version: another program answers there, or the address lacks /api"
        )
    if found.partition(".")[0] != own.partition(".")[0]:
        raise UsageError(
            f"{server} is one of Prefect {found}, and this is Prefect {own}: install the same "
            "version at both places (docs/operate.md, upgrade)"
        )


def _request(
    session: requests.Session, verb: str, url: str, body: JsonObject | None, wait_s: float
) -> _Response:
    """Send a request; the response's body is None if it is longer than ``_MAX_BYTES``."""
    with session.request(verb, url, json=body, stream=True, timeout=wait_s) as response:
        found = bytearray()
        for piece in response.iter_content(_PIECE_BYTES):
            found += piece
            if len(found) > _MAX_BYTES:
                break
        kind = response.headers.get("content-type", "nothing known")
        is_whole = len(found) <= _MAX_BYTES
        return _Response(response.status_code, kind, bytes(found) if is_whole else None)


def _session(address: str) -> requests.Session:
    session = requests.Session()
    headers, session.verify = prefect_access()
    session.headers.update(headers)
    of_address = get_auth_from_url(address)
    # With neither, requests would replace the configured password by one in ~/.netrc.
    session.auth = of_address if any(of_address) and not headers else lambda request: request
    return session


@dataclass(frozen=True)
class ServerStatus:
    """The state of a Prefect server: its runs and workers."""

    address: str  # URL of the API
    problem: str = ""  # why the state is unknown; empty if the state is known
    # (name, deployment, state, start) of active runs, and of runs that failed in the last week.
    under_way: tuple[tuple[str, str, str, str], ...] = ()
    broken: tuple[tuple[str, str, str, str], ...] = ()
    late: tuple[tuple[str, int], ...] = ()  # (deployment, number of runs that wait for a worker)
    scheduled: tuple[tuple[str, str], ...] = ()  # (deployment, time of its next run)
    workers: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (pool, names and states of its workers)


def ask_server() -> ServerStatus | None:
    """Return the state of the configured Prefect server, or None if none is configured."""
    address = prefect_server()
    if address is None:
        return None
    try:
        return answer_within(WHOLE_S, _Questions(address.rstrip("/")).ask)
    except OrchestrationError as error:
        problem = str(error)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        problem = _why(error)
    return ServerStatus(
        without_password(address), problem=f"does not answer as it should: {problem}"
    )


def _why(error: Exception) -> str:
    """Return an error of a request as text for the user."""
    if isinstance(error, requests.Timeout):
        return f"nothing for {TIMEOUT_S:g} s"
    if isinstance(error, requests.ConnectionError):
        return "it cannot be reached"
    if isinstance(error, requests.RequestException | TimeoutError):
        return str(error)
    return f"its responses are not those of Prefect {version('prefect')} ({type(error).__name__})"


class _Questions:
    """Requests to one server, from which ``ask`` makes a ServerStatus."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._session = _session(address)

    def ask(self) -> ServerStatus:
        """Return active, failed, late and scheduled runs, and the workers of each pool."""
        names = {each["id"]: each["name"] for each in self._filter("deployments", {})}
        now = dt.datetime.now(dt.UTC)
        under_way = self._runs(_UNDER_WAY, "START_TIME_DESC")
        recent = {"expected_start_time": {"after_": (now - _RECENT).isoformat()}}
        broken = self._runs(_BROKEN, "EXPECTED_START_TIME_DESC", recent)
        scheduled = self._runs(("SCHEDULED",), "EXPECTED_START_TIME_ASC")
        next_runs: dict[str, str] = {}
        late: Counter[str] = Counter()
        for run in scheduled:
            deployment = str(names.get(run["deployment_id"], run["name"]))
            if run["state_name"] == "Late" or run["expected_start_time"] < now.isoformat():
                late[deployment] += 1
            else:
                next_runs.setdefault(deployment, run["expected_start_time"])
        pools = [pool["name"] for pool in self._filter("work_pools", {})]
        return ServerStatus(
            address=without_password(self._address),
            under_way=tuple(_line(run, names) for run in under_way),
            broken=tuple(_line(run, names) for run in broken[:_MAX_LISTED]),
            late=tuple(late.items()),
            scheduled=tuple(next_runs.items()),
            workers=tuple((name, self._workers(name)) for name in pools),
        )

    def _runs(
        self, states: Sequence[str], sort: str, when: Mapping[str, Any] | None = None
    ) -> list[JsonObject]:
        # Subflows are left out, because their parent runs are listed.
        filters = {"parent_task_run_id": {"is_null_": True}, "state": {"type": {"any_": states}}}
        return self._filter("flow_runs", {"flow_runs": {**filters, **(when or {})}, "sort": sort})

    def _workers(self, pool: str) -> tuple[str, ...]:
        found = self._filter(f"work_pools/{quote(pool, safe='')}/workers", {})
        return tuple(f"{each['name']} {each['status'].lower()}" for each in found)

    def _filter(self, what: str, body: JsonObject) -> list[JsonObject]:
        """Return the objects that match a filter of Prefect's REST interface."""
        url = f"{self._address}/{what}/filter"
        response = _request(self._session, "POST", url, {"limit": _PAGE, **body}, TIMEOUT_S)
        if response.status in _REFUSALS:
            raise OrchestrationError("it wants a user and password (PREFECT_API_AUTH_STRING)")
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise OrchestrationError(
                f"it answers {response.status}; see that it is well, and that the address ends "
                "in /api"
            )
        try:
            found: list[JsonObject] = response.read_json()
        except ValueError as error:
            raise OrchestrationError(
                "it sends no JSON; another program answers there, or the address lacks /api"
            ) from error
        return found


def _line(run: JsonObject, names: dict[str, str]) -> tuple[str, str, str, str]:
    start = run["start_time"] or run["expected_start_time"] or ""
    return run["name"], names.get(run["deployment_id"], ""), run["state_name"], start
