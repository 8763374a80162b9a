"""Docstrings, comments and messages are plain technical English; a heuristic check."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "benchmarks", "cli", "core", "crawlers", "deployments", "flows", "instruments", "models",
    "reports", "scylla", "simulator", "tasks", "warehouse",
)  # fmt: skip
MAX_WORDS = 25  # of a sentence; docs/testing.md asks for 20
# A relative clause in place of a verb ("Whether it …") or a noun ("What it …").
RELATIVE = re.compile(r"(?:Whether|What|Which|Who|Whose|How|When|Where|Why)\b")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
METAPHORS = re.compile(
    r"\b(?:anew|as ever|just so|(?:gives?|given|giving) out|(?:to|can|could|may) be had"
    r"|(?:is|are|was|were) to be had|lets? go of|of which there|rivals?|turns? of|in turns)\b",
    re.IGNORECASE,
)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        is_logged = isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS
        if isinstance(node, ast.Raise) or is_logged:
            for part in ast.walk(ast.Tuple(call.args)):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def sentences(text: str) -> Iterator[str]:
    """Split prose; code blocks, which are indented, are left out."""
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.startswith("    "):
            yield from re.split(r"(?<=[.;:])\s+", paragraph)


def faults_of(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    where = path.relative_to(ROOT)
    found = []
    for line, text in docstrings(ast.parse(source)):
        first = text.partition("\n")[0]
        if RELATIVE.match(first):
            found.append(f"{where}:{line}: begin with a verb or a noun: {first!r}")
        found += [
            f"{where}:{line}: {len(each.split())} words in a sentence: {each[:60]!r}"
            for each in sentences(text)
            if len(each.split()) > MAX_WORDS
        ]
        found += [f"{where}:{line}: {word.group(0)!r}" for word in METAPHORS.finditer(text)]
    for line, text in [*comments(source), *messages(ast.parse(source))]:
        found += [f"{where}:{line}: {word.group(0)!r}" for word in METAPHORS.finditer(text)]
    return found


@pytest.mark.long
@pytest.mark.parametrize("room", ROOMS)
def test_words_are_plain(room: str) -> None:
    faults = [fault for path in sorted((ROOT / room).rglob("*.py")) for fault in faults_of(path)]
    assert not faults, "\n".join(faults)


def test_pages_have_no_metaphors() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    faults = [
        f"{page.relative_to(ROOT)}:{number}: {word.group(0)!r}"
        for page in pages
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        for word in METAPHORS.finditer(line)
    ]
    assert not faults, "\n".join(faults)
