import inspect
import os
import subprocess
import sys
import textwrap

import pytest

from core.environment import telemetry_endpoint
from flows.work import work
from tasks.prefect.tracing import first_span_of
from tests.forks import run_process
from tests.servers import ROOT
from tests.tasks.prefect.collector import collecting

STAGE = """
    from tasks.prefect.tracing import describe, span, traced

    @traced("score")
    def stage(model: str, run: str | None = None) -> None:
        with span("cell", cell=f"{model} on sand 2024-01", nothing=None) as begun:
            describe(begun, tokens=7)

    stage("gpt2", run="monthly-0001")
    stage("alone")
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": os.devnull}
    return run_process(sys.executable, "-c", textwrap.dedent(script), env={**clean, **environment})


def test_a_stage_is_part_of_the_trace_that_its_run_names() -> None:
    with collecting() as (endpoint, spans):
        done = run(STAGE, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        assert done.returncode == 0, done.stderr
    cell, stage, *others = spans
    first = first_span_of("monthly-0001")
    assert (stage.name, stage.service, stage.scope) == ("score", "tidemark", "tidemark")
    assert (stage.trace, stage.parent) == (f"{first.trace_id:032x}", f"{first.span_id:016x}")
    assert stage.facts == {"tidemark.model": "gpt2", "tidemark.run": "monthly-0001"}
    assert (cell.name, cell.trace, cell.parent) == ("cell", stage.trace, stage.id)
    assert cell.facts == {"tidemark.cell": "gpt2 on sand 2024-01", "tidemark.tokens": 7}
    assert [each.name for each in others] == ["cell", "score"]
    assert others[1].parent == ""
    assert len({each.trace for each in spans}) == 2


def test_a_collector_that_is_gone_sinks_nothing() -> None:
    gone = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    assert run(STAGE, **gone).returncode == 0


def test_without_the_extra_there_is_a_warning() -> None:
    script = f"import sys; sys.modules['opentelemetry.sdk'] = None\n{textwrap.dedent(STAGE)}"
    done = run(script, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert "install tidemark[telemetry]" in done.stderr


def test_the_names_of_a_flows_parameters_and_their_types_stay() -> None:
    parameters = inspect.signature(work.fn).parameters
    assert list(parameters)[0] == "pool"
    assert parameters["sources"].annotation == list[str] | None
    assert "sources" in work.parameters.properties


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, "http://a"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b"}, "http://b"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "True"}, None),
    ],
)
def test_the_exporters_own_variables_say_where_to(
    variables: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert telemetry_endpoint() == expected


def test_runs_have_traces_of_their_own() -> None:
    names = ["monthly-0001", "monthly-0002", "\ud800", ""]
    assert len({first_span_of(name).trace_id for name in names}) == len(names)
    assert all(first_span_of(name).is_valid for name in names)
