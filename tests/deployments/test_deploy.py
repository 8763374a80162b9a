import datetime as dt
import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from pydantic import SecretStr

from core.plugins import list_extras
from deployments.deploy import Change, Deployed, deploy
from simulator.server import Request, Response
from tests.commands import TIDEMARK
from tests.deployments.support.automations import NEVER_BEGAN, NO_HEARTBEAT, automation_of
from tests.forks import run_process
from tests.loopback import serving, wait_for
from tests.servers import PrefectServer
from tests.tiers import needs_extra

USER, PASSWORD = "admin", "pass word"
AUTH = f"{USER}:{PASSWORD}"
SECRET = "T0k3n-of-the-webhook"
ALL = {  # with their pools
    "backfill/backfill": "crawl", "monthly/monthly": "crawl", "report/report": "crawl",
    "work/api": "api", "work/gpu": "gpu", "work/gpu-all": "gpu-all",
}  # fmt: skip

HAS_ALARMS = "alarms" in list_extras()
if "scheduled_questions" in list_extras():
    ALL |= {"forecast/forecast": "crawl", "scylla/scylla": "crawl"}

# Services that no test here needs: schedules and automations have others.
UNUSED = (
    "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
)  # fmt: skip

pytestmark = pytest.mark.timeout(3600)  # the first test waits for a server, too


@dataclass
class Inbox:
    url: str = ""
    posted: list[tuple[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module")
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()

    def receive(request: Request) -> Response:
        inbox.posted.append((request.path, json.loads(request.body)))
        return Response(204)

    with serving(receive) as address:
        inbox.url = f"{address}/hooks/{SECRET}"
        yield inbox


class Api:
    def __init__(self, server: PrefectServer) -> None:
        self.server = server

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        return self.server.ask(method, path, body, auth=(USER, PASSWORD))

    def deployments(self) -> dict[str, Any]:
        flows = {flow["id"]: flow["name"] for flow in self("POST", "flows/filter", {})}
        found = self("POST", "deployments/filter", {})
        return {f"{flows[each['flow_id']]}/{each['name']}": each for each in found}

    def automations(self) -> dict[str, Any]:
        return {each["name"]: each for each in self("POST", "automations/filter", {})}

    def runs(self, deployment: str, kind: str = "SCHEDULED") -> list[dict[str, Any]]:
        chosen = {
            "deployment_id": {"any_": [self.deployments()[deployment]["id"]]},
            "state": {"type": {"any_": [kind]}},
        }
        body = {"flow_runs": chosen, "sort": "EXPECTED_START_TIME_ASC"}
        found: list[dict[str, Any]] = self("POST", "flow_runs/filter", body)
        return found

    def start(self, deployment: str, **parameters: object) -> str:
        found = self.deployments()[deployment]["id"]
        body = {"parameters": parameters}
        run = self("POST", f"deployments/{found}/create_flow_run", body)["id"]
        self.become(run, "RUNNING", "Running")
        return str(run)

    def become(self, run: str, kind: str, name: str, message: str = "") -> None:
        state = {"type": kind, "name": name, "message": message}
        self("POST", f"flow_runs/{run}/set_state", {"state": state, "force": True})

    def emit(self, event: str, resource: str, payload: object, tags: tuple[str, ...] = ()) -> None:
        one = {
            "id": str(uuid.uuid4()),
            "occurred": dt.datetime.now(dt.UTC).isoformat(),
            "event": event,
            "resource": {"prefect.resource.id": resource},
            "related": [
                {"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"}
                for tag in tags
            ],
            "payload": payload,
        }
        self("POST", "events", [one])


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    settings = {"PREFECT_SERVER_API_AUTH_STRING": AUTH, "PREFECT_API_AUTH_STRING": AUTH}
    for name in UNUSED:
        settings[f"PREFECT_SERVER_SERVICES_{name}_ENABLED"] = "false"
    server = PrefectServer(tmp_path_factory.mktemp("server"), prefect_template, **settings)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def api(server: PrefectServer) -> Api:
    return Api(server)


@pytest.fixture(scope="module")
def first(server: PrefectServer, api: Api, inbox: Inbox) -> str:
    assert api.deployments() == {}
    environment = {"TIDEMARK_NOTIFY_URL": inbox.url} if HAS_ALARMS else {}
    done = run_deploy(server, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_deploy(server: PrefectServer, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**server.environment, **environment}
    return run_process(TIDEMARK, "deploy", env=environment, cwd=server.folder)


@pytest.fixture
def again(server: PrefectServer, inbox: Inbox, first: str) -> Iterator[Callable[..., Deployed]]:
    chosen = {PREFECT_API_URL: server.url, PREFECT_API_AUTH_STRING: AUTH}
    with temporary_settings(chosen):
        given = {"notify_url": SecretStr(inbox.url)} if HAS_ALARMS else {}
        yield lambda **choices: deploy(server.url, **{**given, **choices})


def load_automations(api: Api) -> None:
    """Return once the server acts on the automations made before: it loads them in their order."""
    trigger = {"type": "event", "posture": "Reactive", "expect": ["probe"], "within": 0}
    end = {"type": "change-flow-run-state", "state": "COMPLETED", "name": "Completed"}
    probe = {"name": "probe", "trigger": trigger, "actions": [end]}
    made = api("POST", "automations/", probe)["id"]
    run = api.start("report/report")

    def has_ended() -> bool:
        api.emit("probe", f"prefect.flow-run.{run}", {})
        return bool(api("GET", f"flow_runs/{run}")["state"]["type"] == "COMPLETED")

    wait_for(has_ended, pause_s=0.2)
    api("DELETE", f"automations/{made}")


def done_by(deployed: Deployed) -> list[Change]:
    return [change for change in deployed.changes if change.verb != "as it was"]


def test_an_empty_server_gets_all_that_a_month_needs(first: str, api: Api) -> None:
    deployments = api.deployments()
    assert {name: each["work_pool_name"] for name, each in deployments.items()} == ALL
    for name, each in deployments.items():
        assert each["tags"] == ["tidemark"]
        assert each["job_variables"]["env"] == {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
        [[pull]] = each["pull_steps"]  # without a step, Prefect copies the worker's folder
        assert pull == "prefect.deployments.steps.set_working_directory"
        assert f"made       deployment {name}\n" in first
    # Prefect would end runs whose slot it cannot renew while the server is away.
    assert not any(each["global_concurrency_limit"] for each in deployments.values())
    assert api("GET", "work_pools/gpu")["concurrency_limit"] == 1
    assert api("GET", "work_pools/crawl")["concurrency_limit"] is None
    assert api("GET", "work_pools/crawl")["type"] == "process"
    assert len(api.automations()) == 4 + 3 * HAS_ALARMS


def test_the_schedule_shows_the_next_three_ninth_days_of_a_month(first: str, api: Api) -> None:
    now, expected = dt.datetime.now(dt.UTC), []
    year, month = now.year, now.month
    while len(expected) < 3:
        moment = dt.datetime(year, month, 9, 3, tzinfo=dt.UTC)
        expected += [moment] if moment > now else []
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    times = [run["expected_start_time"] for run in api.runs("monthly/monthly")]
    assert [dt.datetime.fromisoformat(each) for each in times[:3]] == expected
    shown = ", ".join(f"{moment:%Y-%m-%d} 03:00" for moment in expected)
    assert f"next runs of monthly (UTC): {shown}\n" in first


@needs_extra("alarms")
def test_the_address_of_the_webhook_is_nowhere_to_be_read(
    first: str, api: Api, server: PrefectServer
) -> None:
    assert SECRET not in first
    seen = api("POST", "block_documents/filter", {})
    assert [each["name"] for each in seen] == ["tidemark-alerts"]
    assert SECRET not in json.dumps(seen)
    assert SECRET not in json.dumps(api.automations())


def test_deploying_again_changes_nothing(api: Api, again: Callable[..., Deployed]) -> None:
    before = api.deployments(), api.automations(), api.runs("monthly/monthly")
    deployed = again(dry_run=True)
    assert done_by(deployed) == []
    assert len(deployed.next_runs) == 3
    assert done_by(again()) == []
    assert (api.deployments(), api.automations(), api.runs("monthly/monthly")) == before


def test_what_differs_is_changed_and_what_is_paused_stays_so(
    api: Api, again: Callable[..., Deployed]
) -> None:
    monthly = api.deployments()["monthly/monthly"]["id"]
    other = {"schedule": {"cron": "0 4 4 * *", "timezone": "UTC"}, "active": False}
    api("PATCH", f"deployments/{monthly}", {"description": "of old", "schedules": [other]})
    api("PATCH", f"deployments/{api.deployments()['work/gpu']['id']}", {"concurrency_limit": 5})
    silence = api.automations()["tidemark: never began"]
    api("PATCH", f"automations/{silence['id']}", {"enabled": False})

    assert [change.what for change in done_by(again(gpu_slots=3))] == [
        "work pool gpu",
        "deployment monthly/monthly",
        "deployment work/gpu",
    ]
    deployments = api.deployments()
    (schedule,) = deployments["monthly/monthly"]["schedules"]
    assert (schedule["schedule"]["cron"], schedule["active"]) == ("0 3 9 * *", False)
    assert deployments["monthly/monthly"]["description"] != "of old"
    assert deployments["work/gpu"]["global_concurrency_limit"] is None
    assert not api.automations()["tidemark: never began"]["enabled"]

    deployed = again()
    assert done_by(deployed) == []
    assert Change("as it was", "work pool gpu", "limit 3") in deployed.changes
    assert Change("as it was", "deployment monthly/monthly", "paused") in deployed.changes
    assert deployed.next_runs == []


@needs_extra("alarms")
def test_what_is_no_longer_wanted_goes_and_what_is_missing_comes_back(
    api: Api, again: Callable[..., Deployed]
) -> None:
    deployments = api.deployments()
    wanted = deployments["work/gpu"]
    own = ("tags", "work_pool_name")
    flow = api("POST", "flows/", {"name": "crawl"})["id"]
    gone = {
        "flow_id": flow,
        "entrypoint": "flows.crawl.crawl",
        **{name: wanted[name] for name in own},
    }
    api("POST", "deployments/", {**gone, "name": "arxiv", "parameters": {"source": "arxiv"}})
    api("POST", "deployments/", {**gone, "name": "weekly", "parameters": {"source": "arxiv"}})
    # Two of former versions, which started the next stage of a run when an event came.
    obsolete = ("tidemark: score is due", "tidemark: report is due")
    for name in (*obsolete, "mine"):
        api(
            "POST",
            "automations/",
            {**automation_of(NO_HEARTBEAT).model_dump(mode="json"), "name": name},
        )
    api("DELETE", f"deployments/{deployments['monthly/monthly']['id']}")
    api("DELETE", f"automations/{api.automations()['tidemark: no heartbeat']['id']}")

    changes = {f"{change.verb} {change.what}" for change in done_by(again())}
    assert changes == {
        "made deployment monthly/monthly",
        "removed deployment crawl/arxiv",
        "changed automation tidemark: a crashed run starts again",
        "changed automation tidemark: a lost run starts again",
        "changed automation tidemark: the monthly run is late",
        "made automation tidemark: no heartbeat",
        *(f"removed automation {name}" for name in obsolete),
    }
    after, automations = api.deployments(), api.automations()
    assert set(after) == {*deployments, "crawl/weekly"}
    monthly = f"prefect.deployment.{after['monthly/monthly']['id']}"
    late = automations["tidemark: the monthly run is late"]["trigger"]["match_related"]
    assert late == {"prefect.resource.id": monthly}
    assert "mine" in automations
    assert done_by(again()) == []


@needs_extra("alarms")
def test_alarms_are_removed_on_request_alone(api: Api, again: Callable[..., Deployed]) -> None:
    kept = again(notify_url=None)
    assert (done_by(kept), kept.has_alarms) == ([], True)
    removed = again(notify_url=None, keep_alarms=False)
    assert not removed.has_alarms
    quiet = {f"{change.verb} {change.what}" for change in done_by(removed)}
    assert quiet == {
        "removed automation tidemark: a run failed, crashed or is partial",
        "removed automation tidemark: the monthly run is late",
        "removed automation tidemark: a pool has no worker",
        "removed block tidemark-alerts",
    }
    assert api("POST", "block_documents/filter", {}) == []
    assert {change.verb for change in done_by(again())} == {"made"}


@needs_extra("alarms")
def test_somebody_is_told_of_runs_with_holes_but_not_of_good_ones(
    api: Api, inbox: Inbox, again: Callable[..., Deployed]
) -> None:
    again()
    ends = {
        "COMPLETED": ("Completed", "all is well"),
        "FAILED": ("Failed", "a bug {{ address }}"),
        "CRASHED": ("Crashed", "the process died"),
    }
    for kind, (name, message) in ends.items():
        api.become(api.start("report/report"), kind, name, message)
    run = api.start("backfill/backfill", first="2024-01", last="2024-01")
    api.become(run, "COMPLETED", "Completed (partial)", "arxiv 2024-01: the site gave out")

    wait_for(lambda: len(inbox.posted) >= 3, pause_s=0.1)
    assert {path for path, _ in inbox.posted} == {f"/hooks/{SECRET}"}
    texts = "\n".join(body["text"] for _, body in inbox.posted)
    for told in ("a bug {{ address }}", "the process died", "the site gave out", ": Crashed\n"):
        assert told in texts
    assert "all is well" not in texts
    assert SECRET not in texts


@pytest.mark.slow
def test_a_run_whose_heartbeats_stop_is_crashed_and_one_that_ended_is_not(
    api: Api, again: Callable[..., Deployed]
) -> None:
    again()
    automation = automation_of(NO_HEARTBEAT, dt.timedelta(seconds=10)).model_dump(mode="json")
    api("POST", "automations/", {**automation, "name": "short"})
    assert api.automations()["short"]["trigger"]["within"] == 10
    load_automations(api)
    killed, ended, last = (api.start("report/report") for _ in range(3))
    strange = api("POST", "flow_runs/", {"flow_id": api("POST", "flows/", {"name": "x"})["id"]})
    api.become(strange["id"], "RUNNING", "Running")
    for run, tags in ((killed, ("tidemark",)), (ended, ("tidemark",)), (strange["id"], ())):
        api.emit("prefect.flow-run.heartbeat", f"prefect.flow-run.{run}", {}, tags)
    api.become(ended, "COMPLETED", "Completed (partial)")

    def state(run: str) -> str:
        return str(api("GET", f"flow_runs/{run}")["state"]["name"])

    wait_for(lambda: state(killed) == "Crashed", pause_s=0.5)
    message = api("GET", f"flow_runs/{killed}")["state"]["message"]
    assert message.startswith("No heartbeat for 0:10:00")
    api.emit("prefect.flow-run.heartbeat", f"prefect.flow-run.{last}", {}, ("tidemark",))
    wait_for(lambda: state(last) == "Crashed", pause_s=0.5)  # at a later look of the server's
    assert (state(ended), state(strange["id"])) == ("Completed (partial)", "Running")


def test_a_run_that_crashed_starts_again_and_its_work_does_not(
    api: Api, again: Callable[..., Deployed]
) -> None:
    again()
    load_automations(api)
    given = {"month": "2024-01", "sources": ["govuk"], "options": {"redact": True}}
    month = api.start("monthly/monthly", **given)
    work = api.start("work/gpu", models=["control:gzip"])
    deployment = api.deployments()["backfill/backfill"]["id"]
    window = {"parameters": {"first": "2024-01", "last": "2024-01"}}
    stillborn = api("POST", f"deployments/{deployment}/create_flow_run", window)["id"]
    for run in (work, stillborn, month):
        api.become(run, "CRASHED", "Crashed", "the process died")

    def new_runs() -> list[dict[str, Any]]:
        return [run for run in api.runs("monthly/monthly") if not run["auto_scheduled"]]

    wait_for(new_runs, pause_s=0.5)
    [first] = new_runs()
    assert first["parameters"] == given
    assert first["created_by"]["type"] == "AUTOMATION"
    for run in (month, work, stillborn):  # the last never ran, and would crash again
        assert api("GET", f"flow_runs/{run}")["state"]["type"] == "CRASHED"
    assert not api.runs("backfill/backfill")
    assert not api.runs("work/gpu")
    api("DELETE", f"flow_runs/{first['id']}")


@pytest.mark.slow
def test_a_run_whose_worker_died_before_it_began_is_replaced(
    api: Api, again: Callable[..., Deployed]
) -> None:
    again()
    automation = automation_of(NEVER_BEGAN, dt.timedelta(seconds=10)).model_dump(mode="json")
    made = api("POST", "automations/", {**automation, "name": "brief"})
    load_automations(api)
    backfill = api.deployments()["backfill/backfill"]["id"]
    body = {"parameters": {"first": "2024-02", "last": "2024-03"}}
    taken = api("POST", f"deployments/{backfill}/create_flow_run", body)["id"]
    api.become(taken, "PENDING", "Pending")
    wait_for(lambda: api.runs("backfill/backfill"), pause_s=0.5)
    [new] = api.runs("backfill/backfill")
    assert new["parameters"] == body["parameters"]
    state = api("GET", f"flow_runs/{taken}")["state"]
    assert (state["type"], state["name"]) == ("CRASHED", "Lost")
    assert state["message"].startswith("Pending for 0:10:00")
    api("DELETE", f"automations/{made['id']}")
