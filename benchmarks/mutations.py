"""Mutation check: change one operator or number of a module; its tests must then fail."""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {
    "models/scoring/windows.py": [
        "tests/models/scoring/test_windows.py",
        "tests/models/scoring/test_batches.py",
        "tests/models/scoring/test_passes.py",
        "tests/models/scoring/test_machine.py",
    ],
    "models/scoring/accounting.py": [
        "tests/models/scoring/test_accounting.py",
        "tests/models/scoring/test_control.py",
    ],
    "warehouse/land/losses.py": [
        "tests/warehouse/land/test_losses.py",
        "tests/warehouse/land/test_records.py",
    ],
    "warehouse/land/landed.py": [
        f"tests/warehouse/land/test_{subject}.py"
        for subject in ("records", "losses", "puzzles", "answers")
    ],
    "core/storage/claims.py": ["tests/core/storage/test_claims.py"],
    "warehouse/estimates/difficulty.py": [
        f"tests/warehouse/figures/test_{subject}.py" for subject in ("panel", "untreated")
    ],
    "warehouse/estimates/panel.py": ["tests/warehouse/figures/test_panel.py"],
}
_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.And, ast.Or),
)  # fmt: skip
SWAPS = dict(_PAIRS) | {b: a for a, b in _PAIRS} | {ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}
TIMEOUT_S = 300  # time limit of one mutant's tests in seconds


@dataclass(frozen=True)
class Mutant:
    """A module's source with one change."""

    path: str
    line: int
    change: str
    source: str


def mutants_of(path: str) -> Iterator[Mutant]:
    """Yield a mutant for each operator, integer and boolean of a module."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        for field, value, other in changes_of(node):
            setattr(node, field, other)
            yield Mutant(path, getattr(node, "lineno", 0), ast.unparse(node), ast.unparse(tree))
            setattr(node, field, value)


def changes_of(node: ast.AST) -> Iterator[tuple[str, object, object]]:
    """Yield each possible change of a node: a field's name, its present value and its new value."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield "ops", node.ops, [SWAPS[type(node.ops[0])](), *node.ops[1:]]
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        yield "op", node.op, SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "value", node.value, not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "value", node.value, node.value + 1


def is_killed(mutant: Mutant, copy: Path) -> bool:
    """Test a mutant in ``copy`` of the repository; return True if a test fails or hangs."""
    changed = copy / mutant.path
    before = changed.read_text(encoding="utf-8")
    changed.write_text(mutant.source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", *TARGETS[mutant.path]]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, timeout=TIMEOUT_S)
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        changed.write_text(before, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Print each mutant that passes the tests, and the number of mutants that fail them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=10, help="mutants a module")
    parser.add_argument("--path", choices=TARGETS, action="append", help="default: all modules")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tidemark"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info"))
        for path in chosen.path or TARGETS:
            if is_killed(Mutant(path, 0, "", (ROOT / path).read_text(encoding="utf-8")), copy):
                parser.error(f"the tests of {path} fail without a change")
            mutants = list(mutants_of(path))
            sample = random.Random(0).sample(mutants, min(chosen.sample, len(mutants)))
            alive = [mutant for mutant in sample if not is_killed(mutant, copy)]
            for mutant in alive:
                print(f"alive: {path}:{mutant.line}: {mutant.change}", flush=True)
            print(f"{path}: {len(sample) - len(alive)} of {len(sample)} killed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
