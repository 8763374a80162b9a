"""Check of import cycles: of two folders, at most one may import the other, even indirectly.

Imports inside functions, and imports only for types, count as well.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from tools.files import is_product, list_files, read

# Cycles that are known. A cycle may lose folders, and none may be added.
KNOWN = (
    {"cli", "cli/terminal"},
    {"core", "core/storage"},
    {"crawlers", "crawlers/apis", "crawlers/text"},
    {"crawlers/crawling", "crawlers/hygiene", "crawlers/imports", "crawlers/questions"},
    {
        "models", "models/generation", "models/options", "models/scoring", "models/servers",
        "models/weights",
    },
    {"reports", "reports/site", "reports/site/pages"},
    {"extras/scylla", "extras/scylla/puzzles"},
    {"simulator", "simulator/sites"},
)  # fmt: skip
Graph = dict[str, set[str]]


def faults() -> list[str]:
    """Return a fault for each import cycle that is no part of a cycle in ``KNOWN``."""
    files = [file for file in list_files() if is_product(file)]
    unknown = [
        group for group in cycles_of(graph_of(files)) if not any(group <= known for known in KNOWN)
    ]
    advice = "these folders import each other: move what both need"
    return [f"{', '.join(sorted(group))}: {advice}" for group in unknown]


def graph_of(files: list[Path]) -> Graph:
    """Return the folders that each folder imports."""
    modules = {".".join(file.with_suffix("").parts): str(file.parent) for file in files}
    graph: Graph = defaultdict(set)
    for file in files:
        folder = str(file.parent)
        for name in imports_of(ast.parse(read(file))):
            target = folder_of(name, modules)
            if target and target != folder:
                graph[folder].add(target)
    return graph


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Yield the full names of all that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder_of(name: str, modules: Mapping[str, str]) -> str | None:
    """Return the folder of a module, given the name of the module or of an object in the module.

    Return None for a module of another package.
    """
    while name:  # drop the last part until a module has the name
        for module in (name, f"{name}.__init__"):
            if module in modules:
                return modules[module]
        name = name.rpartition(".")[0]
    return None


def cycles_of(graph: Mapping[str, Set[str]]) -> list[frozenset[str]]:
    """Return the groups of nodes that reach each other."""
    reached = {node: reached_from(node, graph) for node in graph}
    groups = []
    for node in sorted(graph):
        group = {other for other in reached[node] if node in reached.get(other, ())}
        if len(group) > 1 and frozenset(group) not in groups:
            groups.append(frozenset(group))
    return groups


def reached_from(start: str, graph: Mapping[str, Set[str]]) -> set[str]:
    """Return all nodes that are reached from a node by one step or more."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached
