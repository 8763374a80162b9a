"""What users can type or query is named in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
import typer

from core.month import Month, month_range
from core.settings import Settings
from crawlers.contract import list_sources
from flows.cli import app
from models.catalogue import CONTROLS
from models.protocols import list_protocols
from warehouse.handbook import write_handbook
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query
from warehouse.schema import describe_view, list_views

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


@pytest.mark.parametrize("command", commands())
def test_every_command_is_in_the_docs(command: str) -> None:
    words = command.split()
    line = re.search(rf"`tidemark {words[0]}\b.*", text_of("commands.md"))
    assert line is not None
    assert words[-1] in line[0]


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_is_in_the_docs_with_its_description(name: str) -> None:
    assert f"`TIDEMARK_{name.upper()}" in text_of("settings.md")
    assert Settings.model_fields[name].description


def test_sources_of_the_docs_exist() -> None:
    """All of them are in `tidemark sources list`: a new one needs no line in the docs."""
    table = text_of("sources.md").partition("| source | what |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert named
    assert sorted({*named} - {*list_sources()}) == []


def test_the_handbook_of_the_warehouse_is_up_to_date() -> None:
    assert text_of("warehouse.md") == write_handbook(), "run `make handbook`"


@pytest.mark.parametrize(
    "view", [view for view, file in list_views().items() if not describe_view(file).is_internal]
)
def test_every_view_for_analysts_is_in_their_guide(view: str) -> None:
    assert f"`{view}" in text_of("analysts.md")


@pytest.mark.parametrize("protocol", [protocol.name for protocol in list_protocols()])
def test_every_protocol_is_in_the_docs(protocol: str) -> None:
    assert f"`{protocol}`" in text_of("metrics.md")


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


@pytest.fixture(scope="module")
def queried(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A published warehouse with the names that the guide's queries use."""
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    months = list(month_range(Month("2023-01"), Month("2024-06")))
    losses = pa.Table.from_pylist(
        [
            {
                "model": model,
                "revision": "1",
                "source": source,
                "month": month.first_day,
                "document_id": f"{month} {source}",
                "chunk_index": 0,
                "protocol": "default",
                "nll_nats": 100.0 if month <= Month("2023-08") else 150.0,
                "num_tokens": 50,
                "num_chars": 200,
                "num_bytes": 200,
            }
            for model in ("control:zstd", "reference-2023-08")
            for source in ("arxiv", "wikipedia_new")
            for month in months
        ]
    )
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses, "figures")
    publish(settings)
    return settings


QUERIES = re.findall(r"```sql\n(.*?)```", (DOCS / "analysts.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("query_text", QUERIES)
def test_queries_of_the_analysts_guide_run(query_text: str, queried: Settings) -> None:
    table = query(queried, query_text.rstrip().rstrip(";"))
    assert table.num_columns >= 3


def test_no_placeholder_is_left_in_the_readme() -> None:
    assert re.findall(r"\b[A-Z]+_[A-Z]+\b", (ROOT / "README.md").read_text("utf-8")) == []
