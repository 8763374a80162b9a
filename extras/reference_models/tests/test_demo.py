import json

import pytest

from core.errors import UsageError
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.contract import list_question_sources
from crawlers.registry import list_sources


@pytest.mark.long
@pytest.mark.parametrize(
    ("mark", "what"),
    [
        ({"seed": 0, "is_complete": True}, "the demo of another version"),  # as before versions
        ({"version": 2, "seed": 0, "is_complete": False}, "the demo of another version"),
        ({"version": 3, "seed": 1, "is_complete": True}, "the demo of seed 1"),
    ],
)
def test_a_demo_goes_on_with_its_own_kind_only(
    settings: Settings, mark: dict[str, object], what: str
) -> None:
    from extras.reference_models.demonstration import run_demo  # imports torch

    store = Store(settings.home)
    store.write_bytes("demo.json", json.dumps(mark).encode())
    with pytest.raises(UsageError, match=what):
        run_demo(settings, 0)


@pytest.mark.long
def test_the_demo_has_those_of_its_sources_that_are_there() -> None:
    from extras.reference_models import demonstration  # imports torch

    ours = ("arxiv", "github_projects", "wikipedia_monitored", "wikipedia_new")
    assert [each for each in ours if each in list_sources()] == list(demonstration.SOURCES)
    asked = [each for each in ("manifold", "polymarket") if each in list_question_sources()]
    assert asked == list(demonstration.QUESTION_SOURCES)
    assert {"wikipedia_new", "manifold"} <= {
        *demonstration.SOURCES,
        *demonstration.QUESTION_SOURCES,
    }
