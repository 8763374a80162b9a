"""`tidemark sources check`, against the simulator, and against one that has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from core.errors import TokenRefused, UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers.contract import list_sources, load_crawler
from flows.cli import app
from flows.source_check import check_source, month_to_ask
from simulator.server import Request, Response, Web, serve, serve_sites
from simulator.sites import metaculus, wikipedia
from simulator.world import World

MONTH = Month.last_complete()


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(7, MONTH - 1, MONTH)) as running:
        yield running


@pytest.mark.parametrize("source", list_sources())
def test_the_simulated_site_answers_as_it_does(source: str, settings: Settings, web: Web) -> None:
    month = month_to_ask(load_crawler(source).INFO)
    if month == MONTH:
        differences, wrong = check_source(source, settings.model_copy(update={"sites": web.urls}))
    else:
        with serve(World(7, month - 1, month)) as another:
            sites = {"sites": another.urls}
            differences, wrong = check_source(source, settings.model_copy(update=sites))
    assert wrong == []
    shapes = json.loads(Store(settings.home).read_bytes(f"shapes/{source}.json"))
    assert shapes["true"].keys() == shapes["simulated"].keys()


@pytest.mark.parametrize("source", ["manifold", "metaculus", "polymarket"])
def test_a_site_of_questions_answers_as_the_simulated_one(
    source: str, settings: Settings, web: Web
) -> None:
    given = {"sites": web.urls, "tokens": {"metaculus": SecretStr(metaculus.TOKEN)}}
    differences, wrong = check_source(source, settings.model_copy(update=given))
    assert wrong == []
    assert not [each for each in differences if each.is_fault]
    shapes = json.loads(Store(settings.home).read_bytes(f"shapes/{source}.json"))
    assert shapes["true"].keys() == shapes["simulated"].keys()
    assert any("$" in field for shape in shapes["true"].values() for field in shape)


def test_what_cannot_be_compared_is_refused(settings: Settings, web: Web) -> None:
    asked = settings.model_copy(update={"sites": web.urls})
    begun = len(web.requests)
    with pytest.raises(TokenRefused, match="TIDEMARK_TOKENS__METACULUS"):
        check_source("metaculus", asked)
    with pytest.raises(UsageError, match="browser"):
        check_source("good_judgment_open", asked)
    assert len(web.requests) == begun


class ChangedWiki(wikipedia.Site):
    """A wiki whose revisions have another name for their time."""

    def respond(self, request: Request) -> Response:
        answer = super().respond(request)
        return replace(answer, body=answer.body.replace(b'"timestamp"', b'"when"'))


def test_a_field_that_the_true_site_lacks_is_told_and_fails(settings: Settings) -> None:
    with serve_sites([ChangedWiki(World(7, MONTH - 1, MONTH))]) as web:
        environment = {
            "TIDEMARK_SITES__WIKIPEDIA": web.urls["wikipedia"],
            "TIDEMARK_REQUEST_INTERVAL_S": "0",
            "TIDEMARK_HOME": settings.home,
        }
        done = CliRunner().invoke(app, ["sources", "check", "wikipedia_new"], env=environment)
    assert done.exit_code == 1
    assert "$.query.logevents[].timestamp" in done.output
    assert "missing" in done.output
    shapes = json.loads(Store(settings.home).read_bytes("shapes/wikipedia_new.json"))
    assert any("$.query.logevents[].when" in shape for shape in shapes["true"].values())
