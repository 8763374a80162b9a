"""Find tests that depend on the clock, on chance, or on equality of floats; a heuristic check."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tools import racing_tests
from tools.files import list_files, read, room_of
from tools.racing_tests import CLOCKS, Fault, called

DURATION = re.compile(r"(?:elapsed|duration|took|waited|seconds)(?:_s)?$|_took$|^wall_s$")
FLOAT_NAME = re.compile(r"(?:^|_)(?:nll|nats|bits|loss|perplexity|log_probability)$")
CHANCE = re.compile(r"^(?:random|shuffle|choice|choices|sample|randint|randrange|uniform|gauss)$")
# Figures whose last bits differ between machines.
FIGURES = {"losses", "logits", "scores"}
# Figures here are whole numbers of bytes or bits times ln 2, or those of a toy engine.
EXACT = {"test_batches.py", "test_compressors.py", "test_fake.py"}
# "file::function": reason.
ALLOWED = {
    "loopback.py::free_port": "keeps the socket",
    "tools/test_house.py::test_unreliable_tests_are_found": "its parameters are faults, as texts",
    "servers.py::shared_server": "waits until the other processes of a run of tests have ended",
}


def durations_in(function: ast.AST) -> set[str]:
    """Return the names of a function that hold a measured duration."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and is_duration(node.value, set()):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def is_duration(node: ast.AST, names: set[str]) -> bool:
    """Return True for `time.monotonic() - began`, and for a name with such a value."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return called(node.left).removeprefix("time.") in CLOCKS and "time." in called(node.left)
    if isinstance(node, ast.Name):
        return node.id in names or bool(DURATION.search(node.id))
    return False


def asserted_durations(function: ast.AST) -> Iterator[Fault]:
    """Find assertions of an upper limit of measured time, which fail on a busy machine."""
    names = durations_in(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            for test in ast.walk(node.test):
                if isinstance(test, ast.Compare) and is_limited(test, names):
                    yield node.lineno, "asserts an upper limit of measured time"


def is_limited(test: ast.Compare, names: set[str]) -> bool:
    """Return True if a comparison requires a duration to be below a limit."""
    sides = [test.left, *test.comparators]
    for left, operator, right in zip(sides, test.ops, sides[1:], strict=False):
        smaller = left if isinstance(operator, (ast.Lt, ast.LtE)) else right
        is_order = isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        if is_order and is_duration(smaller, names):
            return True
    return False


def slept_assertions(function: ast.AST) -> Iterator[Fault]:
    """Find `time.sleep(0.5)` that an assertion follows at once: the machine may need longer."""
    for node in ast.walk(function):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                for first, second in zip(body, body[1:], strict=False):
                    if (
                        isinstance(first, ast.Expr)
                        and called(first.value) == "time.sleep"
                        and isinstance(second, ast.Assert)
                    ):
                        yield first.lineno, "sleeps, then asserts"


def chances(function: ast.AST) -> Iterator[Fault]:
    """Find numbers drawn without a seed."""
    source = ast.unparse(function)
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = called(node)
        head, _, last = name.rpartition(".")
        is_draw = head in {"random", "np.random"} and CHANCE.match(last)
        if is_draw and "random.seed(" not in source:
            yield node.lineno, f"draws from `{name}` without a seed"
        is_seeded = node.args or node.keywords
        if last in {"Random", "default_rng"} and not is_seeded:
            yield node.lineno, f"`{name}()` has no seed"


def equal_floats(function: ast.AST) -> Iterator[Fault]:
    """Find computed floats that are compared by ``==``."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
            continue
        sides = [node.left, *node.comparators]
        if "approx" in ast.unparse(node) or any(map(is_exact, sides)):
            continue
        if any(map(is_computed_float, sides)):
            yield node.lineno, f"compares floats with `==`: {ast.unparse(node)[:60]}"


def is_exact(node: ast.AST) -> bool:
    """Return True for constants, and collections of them, which have no rounding errors."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(map(is_exact, node.elts))
    if isinstance(node, ast.UnaryOp):
        return is_exact(node.operand)
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, float) or node.value.is_integer()
    return called(node) in {"len", "set", "int", "float"}


def is_computed_float(node: ast.expr) -> bool:
    """Return True for sums and logarithms, and for names of figures that are computed."""
    name = called(node)
    if name.startswith("math.") and name.split(".")[1] in {"log", "log2", "exp", "sqrt", "fsum"}:
        return True
    if isinstance(node, ast.BinOp):
        return is_computed_float(node.left) or is_computed_float(node.right)
    return any(FLOAT_NAME.search(each) or each in FIGURES for each in names_of(node))


def names_of(node: ast.expr) -> Iterator[str]:
    """Yield the names in an expression that tell what its value is, such as ``losses``."""
    if isinstance(node, ast.Attribute):
        yield node.attr
        if node.attr in ("tolist", "sum", "item"):
            yield from names_of(node.value)
    elif isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)
        yield from names_of(node.value)
    elif isinstance(node, ast.Call):
        yield from names_of(node.func)
        if called(node).rpartition(".")[2] in {"sum", "mean", "fsum"}:
            for argument in node.args:
                yield from names_of(argument)
    elif isinstance(node, ast.Name):
        yield node.id


RULES: tuple[Callable[[ast.AST], Iterator[Fault]], ...] = (
    asserted_durations,
    slept_assertions,
    chances,
    equal_floats,
    *racing_tests.RULES,
)


def faults() -> list[str]:
    """Return the faults of all tests, and entries of ``ALLOWED`` that match no test."""
    found = []
    functions = set()
    for file in list_files():
        if "tests" in file.parts:
            where = name_of(file)
            found += source_faults(where, read(file))
            functions |= {f"{where}::{node.name}" for node in functions_of(read(file))}
    unneeded = ALLOWED.keys() - functions
    return found + [f"tools/reliable_tests.py: there is no test {name}" for name in unneeded]


def name_of(file: Path) -> str:
    """Return the path of a test below the folder of tests at the top, or its whole path."""
    is_at_top = room_of(file) == "tests"
    return str(file.relative_to("tests") if is_at_top else file)


def functions_of(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield all functions of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def source_faults(where: str, source: str) -> list[str]:
    """Return the faults of one module; ``where`` is its name for messages and exceptions."""
    found = set()
    for function in functions_of(source):
        if f"{where}::{function.name}" in ALLOWED:
            continue
        for rule in RULES:
            if rule is equal_floats and Path(where).name in EXACT:
                continue
            for line, fault in rule(function):
                found.add(f"{where}:{line}: {function.name}: {fault}")
    return sorted(found)
