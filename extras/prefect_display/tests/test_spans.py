import os
import subprocess
import sys
import textwrap

import pytest

from core.environment import telemetry_endpoint
from extras.prefect_display.tests.collector import collecting
from tests.forks import run_process
from tests.servers import ROOT

SPAN = """
    import flows
    from opentelemetry import trace

    with trace.get_tracer("prefect").start_as_current_span("monthly 2024-03"):
        pass
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": os.devnull}
    return run_process(sys.executable, "-c", textwrap.dedent(script), env={**clean, **environment})


def test_spans_are_exported_once_flows_are_imported() -> None:
    with collecting() as (endpoint, spans):
        done = run(SPAN, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        assert done.returncode == 0, done.stderr
    [span] = spans
    assert (span.name, span.service, span.scope) == ("monthly 2024-03", "tidemark", "prefect")


def test_a_collector_that_is_gone_sinks_nothing() -> None:
    gone = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    assert run(SPAN, **gone).returncode == 0


def test_without_the_extra_there_is_a_warning() -> None:
    script = f"import sys; sys.modules['opentelemetry.sdk'] = None\n{textwrap.dedent(SPAN)}"
    done = run(script, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert "-e '.[telemetry]'" in done.stderr


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
