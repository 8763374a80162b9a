"""Marks of a test, derived from the objects that it names: servers, processes, torch."""

import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from core.plugins import list_extras

# A module, by its root's name, or an object, by its full name, that gives a mark to its user.
SERVER = {"moto", "tests.object_store", "tests.servers", "tests.conftest.running"}
PROCESS = {
    "subprocess", "multiprocessing", "playwright", "ray", "tests.forks",
    "extras.browser_questions.browser", "crawlers.git", "extras.arxiv.latex.reader.LatexReader",
}  # fmt: skip
TORCH = {"torch", "transformers", "tokenizers", "peft", "rwkv", "lm_eval"}
MARKS = {"server": SERVER, "process": PROCESS, "torch": TORCH}


def few(values: Iterable[Any], number: int) -> list[Any]:
    """Return values of a parameter; only the first ``number`` are not ``slow``."""
    many = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*value, marks=[pytest.mark.slow] if place >= number else [])
        for place, value in enumerate(many)
    ]


def needs_extra(name: str) -> pytest.MarkDecorator:
    """Skip a test of the kernel that reads views of an extra whose folder was deleted."""
    return pytest.mark.skipif(name not in list_extras(), reason=f"extras/{name} is not there")


def marks_of(item: pytest.Function) -> set[str]:
    """Return the marks for a test and its fixtures, without autouse fixtures, which all have.

    Cases of one test share them.
    """
    key = (item.parent, item.function, _used_by(item))
    if key not in _found:
        _found[key] = set().union(*map(_marks_of_function, _functions_of(item)))
    return _found[key]


_found: dict[tuple[Any, ...], set[str]] = {}


def _used_by(item: pytest.Function) -> tuple[str, ...]:
    return tuple(name for mark in item.iter_markers("usefixtures") for name in mark.args)


@cache
def _marks_of_function(function: Any) -> frozenset[str]:
    return frozenset[str]().union(*map(_marks_of_name, _names(function, set())))


@cache
def _marks_of_name(name: str) -> frozenset[str]:
    return frozenset(mark for mark, names in MARKS.items() if _is_named(name, names))


def _functions_of(item: pytest.Function) -> Iterator[Any]:
    yield item.obj
    fixtures = item._fixtureinfo
    names = [*fixtures.argnames, *_used_by(item)]
    asked: set[str] = set()
    while names:
        name = names.pop()
        if name not in asked:
            asked.add(name)
            for fixture in fixtures.name2fixturedefs.get(name, ()):
                yield fixture.func
                names += fixture.argnames


def _names(function: Any, seen: set[int]) -> Iterator[str]:
    test = getattr(function, "hypothesis", None)
    function = inspect.unwrap(test.inner_test if test else function)
    function = getattr(function, "__func__", function)
    if isinstance(function, type):
        for member in vars(function).values():
            if isinstance(member, FunctionType):
                yield from _names(member, seen)
        return
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    for name in _words(function.__code__):
        value = function.__globals__.get(name)
        if value is None:
            yield name  # of an import within the function, perhaps
            continue
        if isinstance(value, ModuleType):
            yield from _module_names(value)
            continue
        module = getattr(value, "__module__", None) or ""
        yield f"{module}.{name}"
        if module.split(".")[0] == "tests":
            yield from _names(value, seen)
        else:
            yield from _imports_torch(module)


def _module_names(module: ModuleType) -> Iterator[str]:
    yield module.__name__
    yield from _imports_torch(module.__name__)


def _imports_torch(name: str) -> Iterator[str]:
    module = sys.modules.get(name)
    if name.split(".")[0] in {"models", "benchmarks"} and "torch" in vars(module or object):
        yield "torch"


def _words(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _words(constant)


def _is_named(name: str, names: set[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:length]) in names for length in range(1, len(parts) + 1))
