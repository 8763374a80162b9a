"""What one must know to add something: the pages name it, and these tests count it."""

import ast
import re
from pathlib import Path

import pytest
import yaml

from models.catalogue import parse_catalogue
from models.kinds import Backend

ROOT = Path(__file__).resolve().parents[1]
HOUSE = {"core", "crawlers", "extras", "models"}


def page(name: str) -> str:
    return (ROOT / "docs" / f"add-a-{name}.md").read_text(encoding="utf-8")


def named(text: str, number: str) -> set[str]:
    """Return the names of the sentence that says how many are enough."""
    [sentence] = re.findall(rf"{number} names are enough\b(.*?)\.(?:\s|$)", text, re.DOTALL)
    return set(re.findall(r"`([^`]+)`", sentence)) - {".yml"}


def block(text: str, language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0]


def imports_of(tree: ast.Module) -> set[str]:
    """Return the names that a module imports from tidemark."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in HOUSE:
            found |= {alias.name for alias in node.names}
    return found


def defined_in(tree: ast.Module) -> set[str]:
    """Return the names that a module or its classes define."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.add(node.targets[0].id)
    return found


def test_a_source_needs_twelve_names() -> None:
    toy = ROOT / "tests" / "crawlers" / "toy" / "crawler.py"
    tree = ast.parse(toy.read_text(encoding="utf-8"))
    names = imports_of(tree) | {"INFO", "fetch_month"}
    assert {"INFO", "fetch_month"} <= defined_in(tree)
    assert names == named(page("source"), "Twelve")
    assert len(names) <= 12


def test_a_source_has_ten_required_facts_at_most() -> None:
    tree = ast.parse((ROOT / "crawlers" / "contract.py").read_text(encoding="utf-8"))
    [facts] = [node for node in tree.body if getattr(node, "name", "") == "SourceInfo"]
    assert isinstance(facts, ast.ClassDef)
    fields = [node for node in facts.body if isinstance(node, ast.AnnAssign)]
    assert 0 < len([node for node in fields if node.value is None]) <= 10


def test_a_backend_needs_six_names() -> None:
    tree = ast.parse(block(page("backend"), "python"))
    names = named(page("backend"), "Six")
    [described] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    ]
    assert {each.arg for each in described.keywords} | {"Backend"} <= names
    # The scorer of the example stands for one's own.
    assert imports_of(tree) - {"Settings", "FakeScorer"} <= names
    assert len(names) <= 6 and "score_together" in names
    assert hasattr(Backend, "__dataclass_fields__")


def test_a_view_needs_eight_names() -> None:
    text = page("view")
    described = yaml.safe_load(block(text, "yaml"))
    keys = set(described)
    for facts in described["columns"].values():
        keys |= set(facts)
    files = set(re.findall(r"/two_months/(\w+\.csv)", text))
    assert keys | files == named(text, "Eight")
    assert len(keys | files) <= 8


def test_a_puzzle_needs_six_names() -> None:
    tree = ast.parse(block(page("puzzle"), "python"))
    facts = {"title", "statement", "answer_rule", "level", "complexity", "answer_shape"}
    names = imports_of(tree) | defined_in(tree) - facts - {"FindRange"}
    assert names | {"ORACLES"} == named(page("puzzle"), "Six")
    assert len(names) < 6


@pytest.mark.parametrize("entry", ["- {name: charge, kind: causal_lm, location: org/model}"])
def test_a_model_is_one_entry(entry: str) -> None:
    [found] = parse_catalogue(entry.encode(), "catalogue.yaml")
    assert found.name == "charge"
