import numpy as np
import pytest
from tokenizers import Tokenizer, models

from models.packing import END_ID, IGNORED, START_ID, PackedCorpus, _windows


def make_corpus(lengths: list[int], context: int) -> PackedCorpus:
    """Documents of consecutive token ids from 100, an end token after each."""
    tokens: list[int] = []
    ends = []
    for length in lengths:
        tokens += [*range(100 + len(tokens), 100 + len(tokens) + length), END_ID]
        ends.append(len(tokens))
    bounds = _windows(np.array(ends, dtype=np.int64), context - 1)
    return PackedCorpus(Tokenizer(models.BPE()), np.array(tokens, dtype=np.uint32), bounds)


def test_windows_cover_every_document_once_and_cross_none() -> None:
    corpus = make_corpus([3, 0, 10, 4], context=6)

    windows = [corpus.tokens[begin:end].tolist() for begin, end in corpus.bounds]

    assert windows == [
        [100, 101, 102, END_ID],
        [END_ID],
        [105, 106, 107, 108, 109],
        [110, 111, 112, 113, 114],
        [END_ID],
        [116, 117, 118, 119, END_ID],
    ]


def test_a_window_begins_with_the_start_token_and_predicts_all_of_its_text() -> None:
    corpus = make_corpus([3, 1], context=8)

    inputs, targets = corpus.tensors(np.array([0, 1]))

    assert inputs[0].tolist() == [START_ID, 100, 101, 102]
    assert targets[0].tolist() == [100, 101, 102, END_ID]
    assert inputs[1, :2].tolist() == [START_ID, 104]
    assert targets[1].tolist() == [104, END_ID, IGNORED, IGNORED]


@pytest.mark.parametrize("batch", [1, 3, 8, 1000])
def test_an_epoch_holds_every_window_once(batch: int) -> None:
    corpus = make_corpus(list(range(1, 60)), context=9)

    batches = corpus.epoch(batch, 7, 0)

    assert sorted(np.concatenate(batches).tolist()) == list(range(len(corpus.bounds)))
    assert len(batches) == -(-len(corpus.bounds) // batch)


def test_the_order_of_an_epoch_follows_from_its_seed() -> None:
    corpus = make_corpus(list(range(1, 60)), context=9)

    first, again, second, other = (
        np.concatenate(corpus.epoch(4, *seed)).tolist() for seed in ((7, 0), (7, 0), (7, 1), (8, 0))
    )

    assert first == again
    assert first != second
    assert first != other
