"""Steps of flows with a server that never ends its answers, asks for an hour, or is away."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from core.errors import OrchestrationError, StorageError
from core.settings import Settings
from flows import rounds
from flows.rounds import Rounds
from tasks.prefect import server
from tasks.prefect.cancelling import _asks_if_cancelled
from tasks.prefect.given import load_secret
from tasks.prefect.server import ask_server, wait_for_server
from tests.loopback import free_port
from tests.unfit_servers import Respond, ask_for_patience, drip, send_no_gzip, serving

RUN = UUID(int=1)


@pytest.fixture(params=[drip, ask_for_patience])
def endless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve what ends a wait only by our own limit."""
    monkeypatch.setattr(server, "ANSWER_S", 0.2)
    monkeypatch.setattr(server, "LOOK_S", 0.01)
    with serving(request.param) as address:
        monkeypatch.setenv("PREFECT_API_URL", address)
        yield address


def test_a_wait_ends_as_our_error(endless: str) -> None:
    with pytest.raises(OrchestrationError, match="s .TimeoutError: no whole answer"):
        wait_for_server(wait_s=0.3)


def test_a_secret_is_given_up(endless: str) -> None:
    with pytest.raises(StorageError, match="does not say whether it has a block"):
        load_secret("tidemark-arxiv", StorageError, "or unset PREFECT_API_URL")


def test_who_asks_whether_it_is_cancelled_asks_again(endless: str) -> None:
    assert not _asks_if_cancelled(RUN)


def test_a_run_that_watches_its_flow_runs_ends(
    endless: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "AWAY_S", 0.3)
    quick = settings.model_copy(update={"watch_interval_s": 0.01})
    watched = Rounds(lambda _: {}, {}, quick)
    watched._active = {RUN: FlowRun(id=RUN, flow_id=RUN)}
    with pytest.raises(OrchestrationError, match="s .TimeoutError: no whole answer"):
        watched.drain(lambda: True)


def test_a_question_that_is_not_answered_is_our_error(
    endless: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "wait_for_server", lambda: None)
    with pytest.raises(OrchestrationError, match="answers, but not this question .TimeoutError"):
        ask_server(lambda client: client.read_flow_run(RUN))


@pytest.mark.parametrize("respond", [None, send_no_gzip])
def test_a_server_that_is_away_or_another_program_is_our_error(
    monkeypatch: pytest.MonkeyPatch, respond: Respond | None
) -> None:
    monkeypatch.setattr(server, "LOOK_S", 0.01)
    with serving(respond or drip) as address:
        url = address if respond else f"http://127.0.0.1:{free_port()}/api"
        monkeypatch.setenv("PREFECT_API_URL", url)
        without_tries = {PREFECT_API_URL: url, PREFECT_CLIENT_MAX_RETRIES: 0}
        with (
            temporary_settings(without_tries),
            pytest.raises(OrchestrationError, match="has not answered for"),
        ):
            wait_for_server(wait_s=0.1)
