"""Thirds of perplexity under a reference model, worked out by hand."""

import math
from typing import Any

import pytest

from core.settings import Settings
from extras.common_crawl.commands import thirds_statement
from tests.commands import *  # noqa: F403
from warehouse.database.writer import connected


@pytest.fixture
def rows(settings: Settings) -> list[dict[str, Any]]:
    # Document: nats and tokens under the reference model; nats and bytes under another one.
    losses = {
        "a": ([(2.0, 2), (2.0, 2)], (8.0, 8)), "b": ([(6.0, 2)], (6.0, 12)),
        "c": ([(1.0, 2)], (3.0, 6)), "d": ([(8.0, 2)], (9.0, 6)), "e": ([(5.0, 2)], (1.0, 4)),
        "f": ([(7.0, 2)], (2.0, 4)),
    }  # fmt: skip
    with connected(settings) as connection:  # a copy: to make all views takes ten seconds
        for document, (own, (nats, num_bytes)) in losses.items():
            given = [("ref", part, tokens, 4) for part, tokens in own]
            given.append(("other", nats, 1, num_bytes))
            for index, (model, part, tokens, size) in enumerate(given):
                connection.execute(
                    "insert into chunk_losses (model, revision, source, month, document_id, "
                    "chunk_index, protocol, nll_nats, num_tokens, num_chars, num_bytes) values "
                    "(?, 'r', 'common_crawl', '2024-03-01', ?, ?, 'default', ?, ?, 1, ?)",
                    [model, document, index, part, tokens, size],
                )
        parameters = ["common_crawl", "ref", "default"]
        return connection.sql(thirds_statement(), params=parameters).to_arrow_table().to_pylist()


@pytest.mark.smoke
def test_thirds_are_of_documents_by_perplexity_a_token(rows: list[dict[str, Any]]) -> None:
    other = [row for row in rows if row["model"] == "other"]
    assert [(row["third"], row["num_documents"]) for row in other] == [
        ("head", 2), ("middle", 2), ("tail", 2),
    ]  # fmt: skip
    # By nats a token: c 0.5, a 1, e 2.5, b 3, f 3.5, d 4.
    for row, low, high in zip(other, (0.5, 2.5, 3.5), (1, 3, 4), strict=True):
        assert row["perplexity_low"] == pytest.approx(math.exp(low))
        assert row["perplexity_high"] == pytest.approx(math.exp(high))
    expected = [11 / 14, 7 / 16, 11 / 10]  # nats a byte of c and a, e and b, f and d
    assert [row["bits_per_byte"] * math.log(2) for row in other] == pytest.approx(expected)


def test_without_losses_the_command_says_how_to_make_them(tidemark: Any) -> None:
    ran = tidemark("corpus", "thirds", "common_crawl", "--model", "ref")
    ran.expect(2, "nothing is published")
