"""Commands with a server at PREFECT_API_URL that never ends, or sends what nobody can read."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unfit_servers import (
    Respond,
    ask_for_patience,
    drip,
    nest,
    send_much,
    send_no_gzip,
    serving,
)


@pytest.mark.parametrize(
    ("respond", "of_deploy", "of_status"),
    [
        (drip, "does not answer (TimeoutError)", "no whole answer in 0.3 s"),
        (nest, "answers with application/json, not with Prefect's version", "it sends no JSON"),
        (send_much, "answers with application/json, not with Prefect's", "it sends no JSON"),
    ],
)
def test_a_response_that_cannot_be_read_is_told(
    tidemark: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    respond: Respond,
    of_deploy: str,
    of_status: str,
) -> None:
    if respond is drip:
        monkeypatch.setattr("cli.server.WHOLE_S", 0.3)
    with serving(respond) as address:
        monkeypatch.setenv("PREFECT_API_URL", address)
        assert of_deploy in tidemark("deploy", "--dry-run").err
        assert of_status in " ".join(tidemark("status").out.split())


@pytest.mark.parametrize(
    ("respond", "told"),
    [
        (drip, "does not answer (TimeoutError: no whole answer in 0.3 s)"),
        (ask_for_patience, "does not answer (TimeoutError: no whole answer in 0.3 s)"),
        (send_no_gzip, "answers otherwise than Prefect"),
    ],
)
def test_a_deployment_ends_if_the_server_does_not(
    tidemark: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, respond: Respond, told: str
) -> None:
    if respond is not send_no_gzip:
        monkeypatch.setattr("tasks.prefect.server.ANSWER_S", 0.3)
    with serving(respond) as address:
        monkeypatch.setenv("PREFECT_API_URL", f"{address}/good-at-first")
        tidemark("deploy", "--dry-run").expect(1, told)
