import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fuzzing import runs
from benchmarks.fuzzing.runs import Fuzz, list_names
from crawlers import hackernews
from crawlers.contract import CrawlContext, Drop, Item
from crawlers.questions.contract import list_question_sources
from crawlers.registry import list_all_sources
from tests.conftest import SHARED
from tests.tiers import few

NUM_ANSWERS = 60  # mutated responses a source; docs/testing.md has the command for more


@contextlib.contextmanager
def fuzzing(name: str, folder: Path) -> Iterator[Fuzz]:
    with contextlib.closing(Fuzz(name, SHARED / "recordings", folder)) as fuzz:
        yield fuzz


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", few(list_names(), 3))
def test_mutated_responses_end_in_items_or_errors(name: str, tmp_path: Path) -> None:
    with fuzzing(name, tmp_path) as fuzz:
        assert [outcome.fault for outcome in fuzz.undisturbed if outcome.fault] == []
        if not fuzz.has_requests:
            pytest.skip("this source sends no request by the fetcher")
        kinds = ("Document", "Medium", "Question")
        assert all(sum(each.found[kind] for kind in kinds) for each in fuzz.undisturbed)
        number = num_mutated = 0
        while num_mutated < NUM_ANSWERS:
            outcome = fuzz.run(number)
            assert outcome.fault is None, f"run {number}: {outcome.fault}"
            number, num_mutated = number + 1, num_mutated + outcome.num_mutated


def test_every_source_is_fuzzed() -> None:
    names = [*list_all_sources(), *(f"questions.{name}" for name in list_question_sources())]
    assert list_names() == names


@pytest.mark.long
def test_a_run_can_be_repeated(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    with (
        fuzzing("hackernews", tmp_path / "a") as one,
        fuzzing("hackernews", tmp_path / "b") as other,
    ):
        assert [one.run(number).found for number in (7, 8)] == [
            other.run(number).found for number in (7, 8)
        ]


def _ask_forever(context: CrawlContext) -> Iterator[Item]:
    while True:
        context.fetcher.get("hackernews", "/api/v1/search_by_date", {"tags": "story"})
    yield from ()


def _count_forever(_: CrawlContext) -> Iterator[Item]:
    while True:
        pass
    yield from ()


FAULTS: dict[str, tuple[str, Callable[[CrawlContext], Iterator[Any]]]] = {
    "an error of Python": ("ZeroDivisionError", lambda _: iter([1 // 0])),
    "memory": ("MemoryError", lambda _: iter(bytearray(2**31))),
    "time": ("of processor time", _count_forever),
    "requests": ("2000 requests", _ask_forever),
    "a reason": ("expected one of the reasons", lambda _: iter([Drop("1", "odd")])),  # type: ignore[arg-type]
    "an id": ("is no id", lambda _: iter([Drop("", "deleted")])),
    "a surrogate": ("UnicodeEncodeError", lambda _: iter([Drop("\ud800", "deleted")])),
}


@pytest.mark.long
def test_faults_are_found(tmp_path: Path) -> None:
    with fuzzing("hackernews", tmp_path) as fuzz:
        for number, (kind, (expected, fetch)) in enumerate(FAULTS.items()):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(hackernews, "fetch_month", lambda _, context, do=fetch: do(context))
                if kind == "time":
                    patch.setattr(runs, "MAX_SECONDS", 0.3)
                fault = fuzz.run(number).fault
            assert fault is not None and expected in fault, kind
