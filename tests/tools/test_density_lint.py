"""The density lint names statements that say more than one thing, and leaves the others."""

import pytest

from tools.density_lint import faults_of, shared_names


@pytest.mark.parametrize(
    "source",
    [
        "a, b = 1, 2",
        "self.a, b = f(), g()",
        "if x := f():\n    pass",
        "a = f(x := 1)",
        "a = 1 if b else 2 if c else 3",
        "a = 1 if (2 if b else 3) else 4",
    ],
)
def test_a_dense_statement_is_reported_with_its_line(source: str) -> None:
    assert [line for line, _ in faults_of(f"\n{source}")] == [2]


@pytest.mark.parametrize(
    "source",
    [
        "a, b = pair",
        "a, b = b, a + b",
        "x[0], x[1] = x[1], x[0]",
        "while block := f():\n    pass",
        "a = [y for x in z if (y := f(x))]",
        "a = 1 if b else 2",
        "a = [1 if x else 2 for x in y] if y else []",
    ],
)
def test_other_statements_are_not_reported(source: str) -> None:
    assert faults_of(source) == []


def test_names_of_several_modules_are_found() -> None:
    sources = {"a.py": "class Row: ...\nclass Site: ...", "b.py": "def Row(): ...\nclass Site: ..."}
    assert shared_names(sources) == {"Row": ["a.py", "b.py"]}
