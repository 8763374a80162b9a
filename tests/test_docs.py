import ast
import itertools
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from cli.main import app
from core.errors import UsageError
from core.month import Month, month_range
from core.plugins import list_extras
from core.settings import Settings
from crawlers.registry import list_sources
from models.catalogue import CONTROLS
from models.scoring.protocols import list_protocols
from tests.losses import loss_row, publish_rows
from tools.handbook import write_handbooks
from warehouse.database.schema import describe_view, list_views, public_name
from warehouse.read.query import local_snapshot, opened, query, read_whole

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def text_of(*names: str) -> str:
    return "\n".join((DOCS / name).read_text(encoding="utf-8") for name in names)


def commands(group: typer.Typer = app, prefix: str = "") -> list[str]:
    found = []
    for command in group.registered_commands:
        assert command.callback is not None
        found.append(prefix + (command.name or command.callback.__name__.replace("_", "-")))
    for sub in group.registered_groups:
        assert sub.typer_instance is not None and isinstance(sub.name, str)
        found += commands(sub.typer_instance, f"{sub.name} ")
    return found


def test_every_command_is_in_the_docs() -> None:
    pages = [DOCS / "commands.md", *(ROOT / "extras").glob("*/README.md")]
    page = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for command in commands():
        words = command.split()
        lines = re.findall(rf"`tidemark {words[0]}\b.*", page)
        assert any(words[-1] in line for line in lines), command


def test_every_setting_is_in_the_docs_with_its_description() -> None:
    page = text_of("settings.md")
    module = ast.parse((ROOT / "core" / "settings.py").read_text(encoding="utf-8"))
    [body] = [
        node.body
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == Settings.__name__
    ]
    described = {
        node.target.id
        for node, following in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
    }
    for name in Settings.model_fields:
        assert f"`TIDEMARK_{name.upper()}" in page, name
        assert name in described, name


def test_sources_of_the_docs_exist() -> None:
    """`tidemark sources list` has all sources; the docs need not."""
    table = text_of("sources.md").partition("| source | what |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert named
    assert sorted({*named} - {*list_sources()}) == []


def test_the_handbook_of_the_warehouse_is_up_to_date() -> None:
    for file, text in write_handbooks().items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run `make handbook`"


def test_every_view_for_analysts_is_in_their_guide() -> None:
    page = text_of("analysts.md")
    for view, file in list_views().items():
        extra = file.parents[2]
        guide = (extra / "README.md").read_text("utf-8") if extra.name != "warehouse" else page
        if not describe_view(file).is_internal:
            assert f"`{public_name(view)}" in guide, view


def test_every_protocol_is_in_the_docs() -> None:
    page = text_of("metrics.md")
    assert [each.name for each in list_protocols() if f"`{each.name}`" not in page] == []


@pytest.mark.parametrize("control", CONTROLS)
def test_every_control_is_in_the_docs(control: str) -> None:
    assert f"`{control}`" in text_of("metrics.md")


def test_every_make_target_is_in_the_docs() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    assert [target for target in targets if f"`make {target}`" not in text_of("commands.md")] == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []


def test_no_path_of_one_machine_is_written_down() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
    assert [p.name for p in pages if re.search(r"/(?:work|root|home/\w+)/", p.read_text())] == []


def test_nobody_is_told_to_install_a_name_of_strangers() -> None:
    """The index has a `tidemark` that is not ours, so advice names a checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = "|".join(project["optional-dependencies"])
    tools = r"(?:pip[3x]?|uv(?: pip| tool)?|conda|mamba|poetry) (?:install|add|run)"
    strangers = re.compile(
        rf"(?:{tools}|uvx)\b[^\n`]*[\s'\"]tidemark(?:-eval)?(?![\w/-]|\.\w)"
        rf"|\btidemark(?:-eval)?\[(?:{extras})\]"
    )
    for advice in ("pip install tidemark.", "uv tool install 'tidemark-eval'", "uvx tidemark sql"):
        assert strangers.search(advice)
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.sh", "*.toml", "*.yaml", "*.yml", "*Dockerfile",
         "*Makefile"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pages = [ROOT / name for name in listed.stdout.splitlines() if name != "tests/test_docs.py"]
    assert len(pages) > 1000
    assert [str(page) for page in pages if strangers.search(page.read_text())] == []
    assert "Private :: Do Not Upload" in project["classifiers"]
    assert version(project["name"]) == project["version"]


@pytest.fixture(scope="module")
def queried(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    months = list(month_range(Month("2023-01"), Month("2024-06")))
    rows = [
        loss_row(
            model, source, month.first_day, f"{month} {source}",
            nll_nats=10.0 if month <= Month("2023-08") else 15.0,
        )
        for model in ("control:zstd", "reference-2023-08")
        for source in ("arxiv", "wikipedia_new")
        for month in months
    ]  # fmt: skip
    publish_rows(settings, rows)
    return settings


# Those of analysts.md: tests/test_start_here.py.
GUIDES = text_of("cutoffs.md", "coverage-of-the-papers.md", "walkthrough.md")
QUERIES = [
    query
    for query in re.findall(r"```sql\n(.*?)```", GUIDES, re.DOTALL)
    if "papers" in list_extras() or "papers." not in query
]


@pytest.mark.parametrize("query_text", QUERIES)
def test_queries_of_the_guides_run(query_text: str, queried: Settings) -> None:
    table = query(queried, query_text.rstrip().rstrip(";"))
    assert table.num_columns >= 3


@pytest.mark.long
def test_sql_of_all_pages_runs_or_says_what_it_needs(queried: Settings) -> None:
    """The line above a block that `tidemark sql` refuses says why: a client, a file or an extra."""
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *(ROOT / "extras").glob("*/README.md")]
    refused = []
    with local_snapshot(queried) as path, opened(path) as connection:
        for page in pages:
            text = page.read_text(encoding="utf-8")
            for above, sql in re.findall(r"([^\n]+)\n\n```sql\n(.*?)```", text, re.DOTALL):
                try:
                    read_whole(connection, f"describe {sql.rstrip().rstrip(';')}")
                except UsageError:
                    refused.append((page.name, above))
    assert refused
    explained = re.compile(r"DuckDB|\.sql`|file begins|\(extra `")
    assert [each for each in refused if not explained.search(each[1])] == []


# Pages whose outputs other tests compare; the case of add-a-view.md is input.
COMPARED = {
    "README.md", "add-a-backend.md", "add-a-view.md", "analysts.md", "coverage-of-the-papers.md",
    "cutoffs.md", "walkthrough.md",
}  # fmt: skip


def figures_of_outputs(page: str) -> list[str]:
    """Return the numbers in the printed outputs of a page: not months, codes and names."""
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    return [
        each for block in blocks for each in re.findall(r"(?<![\w.-])\d[\d.,]*(?![\w-])", block)
    ]


def test_no_page_prints_a_figure_that_nothing_compares() -> None:
    pages = [*DOCS.glob("*.md"), *(ROOT / "extras").glob("*/README.md")]
    found = {
        str(page.relative_to(ROOT)): figures
        for page in pages
        if page.name not in COMPARED - {"README.md"}
        and (figures := figures_of_outputs(page.read_text(encoding="utf-8")))
    }
    assert found == {"docs/follow-a-failing-month.md": ["1", "0"]}, "its exit codes alone"
    assert figures_of_outputs("```text\n2024-03 http_5xx 24 kept of 1,996\n```") == ["24", "1,996"]


def test_no_placeholder_is_left_in_the_readme() -> None:
    assert re.findall(r"\b[A-Z]+_[A-Z]+\b", (ROOT / "README.md").read_text("utf-8")) == []


def test_the_licence_is_stated_and_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text
