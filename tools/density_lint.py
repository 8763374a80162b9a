"""Report statements that do more than one thing, and public names that are defined twice.

``python -m tools.density_lint [FOLDER ...]`` prints ``file:line: what to do`` and exits with 1 if
there is anything to report. Without arguments it reads the folders of ``ROOMS``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "cli", "core", "crawlers", "deployments", "extras", "flows", "instruments", "models",
    "reports", "simulator", "tasks", "tools", "warehouse",
)  # fmt: skip
# Public classes and functions of one name in several modules. The number may fall, not rise.
MOST_SHARED_NAMES = 83
# Names that each module of a kind defines, because a registry or a command reads them.
CONTRACT_NAMES = {
    "Site", "faults", "fetch_month", "fetch_questions", "land_for_demo", "main", "make_pages",
}  # fmt: skip


def faults_of(source: str) -> list[tuple[int, str]]:
    """Return the line and the description of each dense statement of a module."""
    tree = ast.parse(source)
    found = [*_tuples(tree), *_walruses(tree), *_nested_conditions(tree)]
    return sorted(found)


def _tuples(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each assignment of several values to several names, except exchanges."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and not _exchanges(target, node.value):
            yield node.lineno, "write one assignment a line"


def _exchanges(targets: ast.Tuple, values: ast.Tuple) -> bool:
    """Return True if a right side reads a target, as in ``a, b = b, a + b``."""
    written = {ast.unparse(target) for target in targets.elts}
    read = {ast.unparse(node) for node in ast.walk(values) if isinstance(node, ast.expr)}
    return not written.isdisjoint(read)


def _walruses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each walrus outside the condition of a loop or comprehension."""
    allowed: set[ast.AST] = set()
    for node in ast.walk(tree):
        conditions: Iterable[ast.expr] = ()
        if isinstance(node, ast.While):
            conditions = [node.test]
        elif isinstance(node, ast.comprehension):
            conditions = node.ifs
        for condition in conditions:
            allowed.update(ast.walk(condition))
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr) and node not in allowed:
            yield node.lineno, f"assign {node.target.id} in a statement of its own"


def _nested_conditions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each conditional expression that has another one inside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            inner = [part for part in _within(node) if isinstance(part, ast.IfExp)]
            if inner:
                yield node.lineno, "use no conditional expression inside another"


def _within(node: ast.expr) -> Iterator[ast.AST]:
    """Yield the parts of an expression, without those in lambdas and comprehensions."""
    own = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, own):
            yield child
            if isinstance(child, ast.expr):
                yield from _within(child)


def public_names(source: str) -> set[str]:
    """Return the public classes and functions that a module defines at its top level."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")} - CONTRACT_NAMES


def shared_names(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the public names that several modules define, each with the modules."""
    places: dict[str, list[str]] = {}
    for path, source in sources.items():
        for name in public_names(source):
            places.setdefault(name, []).append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def read_sources(rooms: Sequence[str]) -> dict[str, str]:
    """Return the text of each module of the rooms, without tests, by its path."""
    sources: dict[str, str] = {}
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "tests" in path.parts:  # the tests of an extra lie within the extra
                continue
            sources[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    return sources


def faults(rooms: Sequence[str] = ()) -> list[str]:
    """Return the faults of the given rooms, or of all."""
    sources = read_sources(rooms or ROOMS)
    lines: list[str] = []
    for path, source in sources.items():
        lines += [f"{path}:{line}: {what}" for line, what in faults_of(source)]
    shared = {} if rooms else shared_names(sources)
    if len(shared) > MOST_SHARED_NAMES:
        lines += [f"{name}: defined in {', '.join(paths)}" for name, paths in shared.items()]
        lines.append(
            f"{len(shared)} public names are defined in several modules, expected at most "
            f"{MOST_SHARED_NAMES}: rename the new one"
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the faults of the given rooms, or of all; return the exit status."""
    lines = faults(arguments)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
