"""Check that docstrings, comments and messages are plain technical English, by heuristics."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tools.files import ROOT, is_product, list_files, read, room_of

ALSO = ("benchmarks", "tools")  # rooms that are no product
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
    """Yield line and text of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each part of a message of a raised error or a log call."""
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


def faults() -> list[str]:
    """Return the faults of all rooms but the tests, and of the pages."""
    found = []
    for file in list_files():
        if is_product(file) or room_of(file) in ALSO:
            found += source_faults(str(file), read(file))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        found += page_faults(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))
    return found


def source_faults(where: str, source: str) -> list[str]:
    """Return the faults of one module; ``where`` is its name for messages."""
    tree = ast.parse(source)
    found = []
    for line, text in docstrings(tree):
        first = text.partition("\n")[0]
        if RELATIVE.match(first):
            found.append(f"{where}:{line}: begin with a verb or a noun: {first!r}")
        for sentence in sentences(text):
            num_words = len(sentence.split())
            if num_words > MAX_WORDS:
                found.append(f"{where}:{line}: {num_words} words in a sentence: {sentence[:60]!r}")
    for line, text in [*docstrings(tree), *comments(source), *messages(tree)]:
        found += [f"{where}:{line}: {word.group(0)!r}" for word in METAPHORS.finditer(text)]
    return found


def page_faults(where: str, text: str) -> list[str]:
    """Return the metaphors of a page."""
    return [
        f"{where}:{number}: {word.group(0)!r}"
        for number, line in enumerate(text.splitlines(), start=1)
        for word in METAPHORS.finditer(line)
    ]
