"""Find tests that race with threads, processes and ports that they use; a heuristic check."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Fault = tuple[int, str]
CLOCKS = {"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns", "time_ns"}
SHORT_S = 60  # a busy machine may pause for longer
# Methods that start something beside the test.
STARTS = {"submit", "start", "Popen", "Thread"}
# Methods by which a waiting loop can end even if the expected event does not happen.
ENDS = {"monotonic", "poll", "done", "kill", "wait"}
READS = {"read_bytes", "read_text", "stat", "open"}


def called(node: ast.AST) -> str:
    """Return the name of the function that a call calls; empty for other nodes."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def last_names(node: ast.AST) -> set[str]:
    """Return the last parts of the names of all functions that are called within a node."""
    return {called(each).rpartition(".")[2] for each in ast.walk(node)} - {""}


def statements_of(function: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield each list of statements that follow each other."""
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def late_clocks(function: ast.AST) -> Iterator[Fault]:
    """Find tests that start a timer first, and read the clock for the measurement only then."""
    for body in statements_of(function):
        for first, second in zip(body, body[1:], strict=False):
            reads = isinstance(second, ast.Assign) and last_names(second.value) & CLOCKS
            starts = isinstance(first, ast.Expr) and {"Timer", "start"} <= last_names(first)
            if starts and reads:
                yield second.lineno, "reads the clock after it starts a timer"


def short_waits(function: ast.AST) -> Iterator[Fault]:
    """Find assertions about ``wait`` and ``join`` with a timeout below ``SHORT_S`` seconds."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assert):
            continue
        for call in ast.walk(node.test):
            if not called(call).endswith((".wait", ".join")) or not isinstance(call, ast.Call):
                continue
            arguments = [*call.args, *(each.value for each in call.keywords)]
            constants = [each.value for each in arguments if isinstance(each, ast.Constant)]
            if any(isinstance(each, (int, float)) and each < SHORT_S for each in constants):
                yield node.lineno, "asserts that something happens within a few seconds"


def endless_waits(function: ast.AST) -> Iterator[Fault]:
    """Find loops that sleep, and do not end if the expected event does not happen."""
    for node in ast.walk(function):
        if not isinstance(node, ast.While) or "sleep" not in last_names(node):
            continue
        if not last_names(node) & ENDS:
            yield node.lineno, "waits without a deadline: see wait_for in tests/loopback.py"


def listed_files(function: ast.AST) -> Iterator[Fault]:
    """Find files that are listed and then read, while a thread or process may delete them.

    Lists of claims are found in every test, since processes release claims at any time.
    """
    is_beside = bool(last_names(function) & STARTS)
    for node in ast.walk(function):
        if not isinstance(node, ast.For) or not last_names(node) & READS:
            continue
        is_list = called(node.iter).rpartition(".")[2] in {"list", "glob"}
        is_safe = "suppress" in last_names(node) or any(
            isinstance(each, ast.Try) for each in ast.walk(node)
        )
        if is_list and not is_safe and (is_beside or "claims" in ast.unparse(node.iter)):
            yield node.lineno, "reads files that it has listed; they may be gone by then"


def lost_ports(function: ast.AST) -> Iterator[Fault]:
    """Find free ports that are released before a server listens there."""
    names = last_names(function)
    if names & {"listen", "recv"}:  # the test itself uses the port
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and called(node).endswith(".bind") and node.args:
            address = node.args[0]
            is_any = isinstance(address, ast.Tuple) and ast.unparse(address.elts[-1]) == "0"
            if is_any:
                yield node.lineno, "gives a free port back: see free_port in tests/loopback.py"


def inherited_figures(function: ast.AST) -> Iterator[Fault]:
    """Find uses of ``ru_maxrss``, which includes memory of the parent before the start."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Attribute, ast.Constant)) and "ru_maxrss" in ast.unparse(node):
            yield node.lineno, "ru_maxrss counts the parent before the start: read VmHWM"


def forked_threads(function: ast.AST) -> Iterator[Fault]:
    """Find process pools that fork the test's process, which has threads."""
    for node in ast.walk(function):
        is_pool = called(node).endswith("ProcessPoolExecutor")
        if isinstance(node, ast.Call) and is_pool and "mp_context" not in ast.unparse(node):
            yield node.lineno, "forks a process with threads, which may keep a lock for ever"


RULES = (
    late_clocks,
    short_waits,
    endless_waits,
    listed_files,
    lost_ports,
    inherited_figures,
    forked_threads,
)
