"""Use every registry of a tree that lacks one extra; run by ``test_extras.py`` in that tree."""

import sys

import duckdb
from typer.testing import CliRunner

from cli.main import app
from core.plugins import list_extras
from core.settings import Settings
from crawlers.questions.contract import list_question_sources, load_question_crawler
from crawlers.registry import list_all_sources, load_crawler
from models.backends import list_backends
from models.catalogue import list_models
from simulator.server import site_kinds
from warehouse.database.objects import create_objects
from warehouse.database.schema import describe_view, list_views


def use_registries() -> None:
    assert len([load_crawler(name) for name in list_all_sources()]) > 10
    assert len([load_question_crawler(name) for name in list_question_sources()]) >= 2
    assert len(list(site_kinds())) > 10
    kinds = {each.kind for each in list_backends()}
    assert {each.kind for each in list_models(Settings())} <= kinds
    assert len([describe_view(file) for file in list_views().values()]) > 40


def make_views() -> None:
    with duckdb.connect() as connection:
        create_objects(connection)


def print_help() -> None:
    for group in [[], *([each.name] for each in app.registered_groups if each.name)]:
        done = CliRunner().invoke(app, [*group, "--help"])
        assert done.exit_code == 0, done.output
        for line in done.output.splitlines():
            print(*group, line.strip("│ "))  # noqa: T201 - the test reads it


def main(deleted: str, with_views: bool) -> None:
    assert deleted not in list_extras()
    use_registries()
    if with_views:
        make_views()
    print_help()
    assert not [name for name in sys.modules if name.startswith(f"extras.{deleted}.")]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "True")
