import pytest

from crawlers.questions.contract import number


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, 1.0), ("0.5", 0.5), (" 2 ", 2.0), (True, None), (None, None), ("inf", None), ("", None),
     ([], None), (10**400, None)],
)  # fmt: skip
def test_numbers(value: object, found: float | None) -> None:
    assert number(value) == found
