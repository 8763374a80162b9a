from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from core.errors import ModelLoadError, NotMeasurable
from models.scoring.row_check import check_rows, tolerance_of
from models.scoring.scorer import DeviceFull, Losses, ScorerFacts, Tokens
from models.scoring.text_model import TextModel, text_model_of
from models.scoring.token_scorer import TokenIdentity, TokenScorer

Fault = Callable[[list[Losses]], list[Losses]]


class Faulty:
    """Gives a loss of 3 nats plus the token read last, and then applies a fault to the batch."""

    max_batch_tokens = None

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        return self.fault([3 + read / 100 for read in inputs])


def leak(rows: list[Losses]) -> list[Losses]:
    """Start each row with the state that the row before it left."""
    return [rows[0], *(row + before[-1] / 10 for before, row in pairwise(rows))]


def swap(rows: list[Losses]) -> list[Losses]:
    return rows[1:] + rows[:1]


def rounded(share: float) -> Fault:
    return lambda rows: [row * (1 + share * (len(rows) > 1)) for row in rows]


@pytest.fixture(scope="module")
def text_model(llama_folder: str) -> TextModel:
    return text_model_of(PreTrainedTokenizerFast.from_pretrained(llama_folder))


def load(text_model: TextModel, engine: Faulty, dtype: str = "float32") -> TokenScorer:
    facts = ScorerFacts("fake", dtype, 256, {}, None)
    return TokenScorer(TokenIdentity("fake", "1", None, "none"), text_model, engine, facts)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", ""])
@pytest.mark.parametrize("fault", [leak, swap])
def test_a_backend_that_mixes_rows_is_refused(
    text_model: TextModel, fault: Fault, dtype: str
) -> None:
    with pytest.raises(NotMeasurable, match=r"fake: a window of \d+ tokens.*difference 0\.\d+ of"):
        load(text_model, Faulty(fault), dtype)


@pytest.mark.parametrize(("dtype", "share"), [("float64", 1e-9), ("float32", 1e-4), ("", 2e-2)])
def test_rounding_is_tolerated_by_dtype(text_model: TextModel, dtype: str, share: float) -> None:
    assert tolerance_of(dtype) == share
    load(text_model, Faulty(rounded(share / 2)), dtype)
    with pytest.raises(NotMeasurable, match=f"{share:.0e}"):
        load(text_model, Faulty(rounded(share * 2)), dtype)


def test_losses_that_are_not_finite_must_be_so_everywhere(text_model: TextModel) -> None:
    def lose_batches(rows: list[Losses]) -> list[Losses]:
        return rows if len(rows) == 1 else [row * np.nan for row in rows]

    load(text_model, Faulty(lambda rows: [row * np.nan for row in rows]))
    with pytest.raises(NotMeasurable, match="difference inf"):
        load(text_model, Faulty(lose_batches))


def test_weights_that_leave_no_memory_are_refused(text_model: TextModel) -> None:
    def full(rows: list[Losses]) -> list[Losses]:
        raise DeviceFull("full")

    with pytest.raises(ModelLoadError, match="leave no memory"):
        check_rows("big", Faulty(full), text_model.tokenizer, "float32")
