import re

from extras.prefect_display import display
from tasks.prefect import telling


def test_each_call_that_is_named_has_a_function() -> None:
    named = re.findall(r"^        (\w+)\(", telling.tell.__doc__ or "", re.MULTILINE)
    assert sorted(named) == sorted(display.__all__)
    assert [name for name in named if not callable(getattr(display, name))] == []
