import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefect.assets import Asset

from core.cells.losses import Cell
from core.corpus.partition import Partition
from core.month import Month
from extras.prefect_display.events import encode, key_of_losses, key_of_partition

HOSTILE = [
    "",
    ".",
    "..",
    "a/b",
    "a b\n",
    "50%",
    "=2F",
    "=",
    "=~",
    "x?y#z",
    "*",
    "日本",
    "\ud800",
    "🜚" * 9,
]


def decode(segment: str) -> str:
    raw = unquote_to_bytes(segment.replace("=", "%"))
    return "" if segment == "=" else raw.decode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_come_back(name: str) -> None:
    assert decode(encode(name)) == name
    assert Asset(key=key_of_partition(Partition(name, Month("2024-03")))).key.count("/") == 4


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_name_that_is_not_long_comes_back(name: str) -> None:
    segment = encode(name)
    assert re.fullmatch("[A-Za-z0-9=.+@:~_-]+", segment)
    assert segment.strip(".")
    if "=~" not in segment:
        assert decode(segment) == name


@settings(deadline=None)
@given(st.text(min_size=80), st.text(min_size=80))
def test_long_names_stay_apart(one: str, other: str) -> None:
    assert (encode(one) == encode(other)) is (one == other)


@settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_every_key_is_valid(model: str, source: str, protocol: str) -> None:
    partition = Partition(source, None)
    cell = Cell(model, "r", partition, "d" * 64, protocol, "s")
    for key in (key_of_partition(partition), key_of_losses(cell)):
        assert Asset(key=key).key == key


def test_ordinary_names_are_readable() -> None:
    cell = Cell("control:zstd", "r", Partition("arxiv", Month("2024-03")), "d", "default", "s")
    assert key_of_losses(cell) == "tidemark://losses/control:zstd/arxiv/2024-03/default"
    assert key_of_partition(cell.partition) == "tidemark://corpus/arxiv/2024-03"
