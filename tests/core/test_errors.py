import inspect
import pickle
import re

import pytest

from core import errors


def _classes() -> list[type[errors.TidemarkError]]:
    return [
        value
        for _, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, errors.TidemarkError)
    ]


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn, path = {}, []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ([│ ├└─]*)([A-Z][A-Za-z]+)\b", line):
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            drawn[match[2]] = path[depth - 1] if depth else "Exception"
    assert drawn == {error.__name__: error.__bases__[0].__name__ for error in _classes()}


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownName("source", "x", ["a", "b"], "look"),
        errors.ItemUnavailable("http_404", "gone"),
        errors.DiskFull("no space"),
    ],
)
def test_errors_travel_between_processes(error: errors.TidemarkError) -> None:
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert arrived.__dict__ == error.__dict__


def test_an_unknown_name_lists_the_known_ones() -> None:
    assert str(errors.UnknownName("source", "x", ["a", "b"])) == "unknown source 'x'; known: a, b"
    assert str(errors.UnknownName("model", "x", [])) == "unknown model 'x'"
    told = str(errors.UnknownName("source", "arxv", ["ao3", "arxiv"]))
    assert told == "unknown source 'arxv'; did you mean arxiv? known: ao3, arxiv"
    told = str(errors.UnknownName("source", "arxv", ["arxiv", "bbc"]))
    assert told == "unknown source 'arxv'; did you mean arxiv? known: arxiv, bbc"
    assert str(errors.UnknownName("model", "x", [], "look")) == "unknown model 'x'; look"


def test_a_name_that_is_known_or_like_none_is_not_asked_about() -> None:
    assert errors.did_you_mean("arxv", {"arxiv", "bbc"}) == "did you mean arxiv? "
    assert errors.did_you_mean("arxiv", {"arxiv", "arxiv:cs"}) == ""
    assert errors.did_you_mean("zzz", {"arxiv"}) == ""
    assert errors.did_you_mean("arxv", []) == ""
