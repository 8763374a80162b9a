import datetime as dt
import importlib
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect import Flow

from core.errors import MalformedInput
from core.month import Month
from core.plugins import list_extras
from crawlers.registry import list_sources, load_crawler
from deployments.automations import PREFIX, read_automations
from deployments.prefect_yaml import PREFECT_YAML, Deployment, is_ours, read_deployments
from instruments.pools import POOLS
from models.scoring.protocols import list_protocols
from tests.deployments.support.automations import NO_HEARTBEAT, automation_of, silence_of

FILE: dict[str, Any] = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))
DEPLOYMENTS = read_deployments()


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda d: d.full_name)
def test_a_deployment_points_at_a_flow_and_says_what_it_does(deployment: Deployment) -> None:
    module, _, name = deployment.entrypoint.rpartition(".")
    flow = getattr(importlib.import_module(module), name)
    assert isinstance(flow, Flow)
    assert flow.name == deployment.flow
    assert deployment.description


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda d: d.full_name)
def test_a_form_has_described_fields_and_no_settings(deployment: Deployment) -> None:
    fields = deployment.fields()
    schema = fields["parameter_openapi_schema"]
    assert fields["version"]
    assert "settings" not in schema["properties"]
    for name, field in schema["properties"].items():
        assert field.get("description"), name
    shown = json.dumps(schema)
    for secret in ("token", "api_key", "home", "warehouse"):
        assert f'"{secret}' not in shown.replace('"max_answer_tokens"', "")


def test_protocols_can_be_chosen_in_the_form() -> None:
    [monthly] = [each for each in DEPLOYMENTS if each.name == "monthly"]
    schema = monthly.fields()["parameter_openapi_schema"]
    protocol = schema["definitions"]["RunOptions"]["properties"]["protocol"]
    [choices] = [each["enum"] for each in protocol["anyOf"] if "enum" in each]
    assert choices == [each.name for each in list_protocols()]


@pytest.mark.parametrize(
    ("deployment", "given"),
    [
        ("monthly/monthly", {"month": "2024-13"}),
        ("work/gpu", {"pool": "cpu"}),
        ("work/gpu", {"verb": "land"}),
        ("work/gpu", {"first": "last month"}),
        ("backfill/backfill", {"first": "2024-1", "last": "2024-02"}),
    ],
)
def test_a_form_refuses_what_is_no_month_or_protocol(
    deployment: str, given: dict[str, str]
) -> None:
    [chosen] = [each for each in DEPLOYMENTS if each.full_name == deployment]
    # It imports SQLAlchemy, which takes half a second, and each process imports this module.
    from prefect.utilities.schema_tools.validation import ValidationError, validate

    with pytest.raises(ValidationError):
        validate(given, chosen.fields()["parameter_openapi_schema"], raise_on_error=True)


def test_there_are_few_deployments_and_none_names_a_source() -> None:
    assert len(DEPLOYMENTS) <= 8, "and two of half-months and weeks"
    assert not set(list_sources()) & set(PREFECT_YAML.read_text(encoding="utf-8").split())


def test_the_monthly_run_begins_when_every_source_lists_the_month() -> None:
    [monthly] = [each for each in DEPLOYMENTS if each.name == "monthly"]
    [schedule] = monthly.schedules
    day = int(schedule.cron.split()[2])
    begins = dt.datetime(2026, 11, day, tzinfo=dt.UTC)
    month = Month("2026-10")
    for source in list_sources():
        info = load_crawler(source).INFO
        if info.last_month is None:
            assert info.lacks(month, begins) is None, source


def test_nothing_else_starts_by_itself() -> None:
    of_extras = {"forecast", "scylla"} if "scheduled_questions" in list_extras() else set[str]()
    assert {each.name for each in DEPLOYMENTS if each.schedules} == {"monthly"} | of_extras


def test_automations_have_the_ids_of_what_they_start() -> None:
    restarted = [uuid.UUID(int=1), uuid.UUID(int=2)]
    automations = read_automations(restarted)
    assert len({each.name for each in automations}) == 4
    assert all(each.name.startswith(PREFIX) for each in automations)
    shown = {each.name.removeprefix(PREFIX): each.model_dump_json() for each in automations}
    for name in ("a crashed run starts again", "a lost run starts again"):
        assert (
            f'["prefect.deployment.{restarted[0]}","prefect.deployment.{restarted[1]}"]'
            in shown[name]
        )
    assert "$" not in "".join(shown.values())


def test_heartbeats_come_often_enough_not_to_be_missed() -> None:
    frequency = {
        int(d.work_pool.job_variables["env"]["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"])
        for d in DEPLOYMENTS
    }
    # A server may be away for five minutes, and a run does not notice at once that it is back.
    silence = silence_of(automation_of(NO_HEARTBEAT))
    assert silence >= dt.timedelta(minutes=5, seconds=3 * max(frequency))


def test_each_pool_has_a_deployment_that_works() -> None:
    pools = {each.work_pool.name: each.parameters for each in DEPLOYMENTS if each.flow == "work"}
    assert pools == {pool: {"pool": pool} for pool in POOLS}


@pytest.mark.parametrize(
    ("full_name", "entrypoint", "parameters", "ours"),
    [
        ("crawl/gone", "flows.crawl.crawl", {"source": "gone"}, True),
        ("crawl/weekly", "flows.crawl.crawl", {"source": "arxiv"}, False),
        ("forecast/forecast", "flows.forecast.forecast", {}, True),
        ("score/all-gpus", "flows.score.score", {}, True),
        ("forecast/forecast", "extras.scheduled_questions.forecast.forecast", {}, True),
        ("forecast/forecast", "theirs.forecast.forecast", {}, False),
        ("forecast/apis", "flows.forecast.forecast", {}, True),
        ("work/gpu", "flows.work.work", {"pool": "gpu"}, True),
        ("backfill/nightly", "flows.backfill.backfill", {}, False),
        ("theirs/theirs", "theirs.py:theirs", {}, False),
    ],
)
def test_deployments_of_others_are_known_by_name(
    full_name: str, entrypoint: str, parameters: dict[str, Any], ours: bool
) -> None:
    assert is_ours(full_name, entrypoint, parameters) is ours


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("deployments: [", "does not describe deployments"),
        ("name: x\npull: []\ndefinitions: {}\ndeployments: [{label: x}]", "label"),
        ("name: x\npull: []\ndefinitions: {}\ndeployments: []", "report/report, work"),
        (None, "runs from a checkout"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(
    text: str | None, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "prefect.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(MalformedInput, match=says):
        read_deployments(path)
