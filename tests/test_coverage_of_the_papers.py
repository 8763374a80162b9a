"""docs/coverage-of-the-papers.md: each command exists, each query runs, each state is true."""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import TyperException
from typer.main import get_command

from benchmarks import write_guide
from benchmarks.coverage_rows import NO_QUERY, Item, items_of
from cli.main import app
from core.plugins import list_extras
from core.settings import Settings
from crawlers.registry import list_on_demand_sources, list_sources
from models.scoring.protocols import list_protocols
from tests.losses import loss_row, publish_rows
from warehouse.read.query import local_snapshot, opened, read_whole

PAGE = (Path(__file__).parents[1] / "docs" / "coverage-of-the-papers.md").read_text("utf-8")


def needed_by(line: str) -> set[str]:
    """Return the extras whose commands or views a line has."""
    named = {*re.findall(r"\(extra `(\w+)`\)", line)}
    return named | {"papers"} if " papers." in line else named


# Lines of extras that are there.
LINES = [line for line in PAGE.splitlines() if needed_by(line) <= {*list_extras()}]
COMMANDS = [shlex.split(text)[1:] for text in re.findall(r"`(tidemark [^`]+)`", "\n".join(LINES))]
QUERIES = sorted({words[1] for words in COMMANDS if words[0] == "sql"})
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
KNOWN = {
    "--source": {*list_sources(), *list_on_demand_sources()},
    "--protocol": {each.name for each in list_protocols()},
}


@cache
def whole_command() -> Any:
    return get_command(app)


def complaint(words: list[str]) -> str | None:
    """Return what is wrong with a command line, or None."""
    command = whole_command()
    rest = list(words)
    while commands := getattr(command, "commands", None):
        if not rest or rest[0] not in commands:
            return f"no command {rest[:1]}"
        command = commands[rest.pop(0)]
    try:
        command.make_context("tidemark", rest)
    except TyperException as error:
        return str(error)
    return None


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_exists(words: list[str]) -> None:
    assert complaint(words) is None
    for option, value in zip(words, words[1:], strict=False):
        if option in KNOWN and words[0] in {"crawl", "score"}:
            assert value in KNOWN[option]


def test_a_command_that_does_not_exist_is_found() -> None:
    assert complaint(["scores"]) == "no command ['scores']"
    assert complaint(["corpus"]) == "no command []"
    assert "No such option" in str(complaint(["score", "--protocols", "default"]))


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    publish_rows(settings, [loss_row("a", "news", None, "d1")])
    return settings


@pytest.mark.long
def test_each_query_is_understood(snapshot: Settings) -> None:
    assert QUERIES
    with local_snapshot(snapshot) as path, opened(path) as connection:
        for text in QUERIES:
            assert read_whole(connection, f"describe {text}").num_rows, text


def test_all_numbered_tables_and_figures_are_there() -> None:
    numbers = {"Li et al.": (6, 5), "Zhu et al.": (16, 11)}
    for paper, printed in numbers.items():
        [section] = [each for each in SECTIONS if each.startswith(paper)]
        for kind, last in zip(("Table", "Figure"), printed, strict=True):
            assert missing(section, kind, last) == [], f"{paper} {kind}"


def missing(section: str, kind: str, last: int) -> list[int]:
    """Return the numbers up to ``last`` that no item of a section names."""
    named: set[int] = set()
    for item in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE):
        for first, joint, second in re.findall(rf"{kind}s? (\d+)\w?(?: (to|and) (\d+))?", item):
            end = int(second or first)
            named |= set(range(int(first), end + 1)) if joint == "to" else {int(first), end}
    return sorted({*range(1, last + 1)} - named)


def test_every_row_has_a_state() -> None:
    states = r"runs|equal|not yet|needs|no rows on the demo: needs |replaced|none|a scheme"
    items = items_of(PAGE)
    assert len(items) > 80
    assert len(items) == len(re.findall(r"^\| (?!item|---)", PAGE, re.MULTILINE))
    for item in items:
        assert re.match(states, item.state), item.name
        assert "tidemark" in item.commands or item.state.startswith(("not yet", "none")), item.name


def test_no_row_claims_to_run_without_rows_on_the_demo() -> None:
    assert [fault for item in items_of(PAGE) for fault in item.faults()] == []
    for item in items_of(PAGE):
        numbers = re.findall(r"\d[\d,]*", item.rows)
        assert len(numbers) == len(item.queries()), item.name
        assert item.rows == (" and ".join(numbers) or NO_QUERY), item.name


@pytest.mark.slow
@pytest.mark.parametrize("page", write_guide.GUIDES, ids=lambda page: page.name)
def test_the_demo_gives_what_pages_print(page: Path, demo: Settings) -> None:
    if not needed_by(page.read_text("utf-8")) <= {*list_extras()}:
        pytest.skip("the page has views of an extra that is not there")
    assert list(write_guide.page_differences(page, demo)) == []


def test_a_state_that_its_rows_deny_is_found() -> None:
    item = Item("Table 1", '`tidemark sql "from a"`, `tidemark sql "from b"`', "0 and 0", "runs")
    assert list(item.faults()) == [
        "Table 1: its state does not begin with 'no rows on the demo: needs '"
    ]
    assert list(item._replace(rows="0 and 3").faults()) == []
    denied = item._replace(rows="3 and 0", state="no rows on the demo: needs scores")
    assert len(list(denied.faults())) == 1
    assert list(denied._replace(rows="0 and 0").faults()) == []
