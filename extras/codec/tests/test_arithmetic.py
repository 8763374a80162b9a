import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.errors import UsageError
from extras.codec.arithmetic import MAX_TOTAL, ArithmeticDecoder, ArithmeticEncoder, Frequencies

few = hypothesis_settings(max_examples=150, deadline=None)


def encode(parts: list[tuple[int, int, int]]) -> bytes:
    encoder = ArithmeticEncoder()
    for part in parts:
        encoder.encode(*part)
    return encoder.finish()


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    weights = st.one_of(
        st.integers(1, 4), st.integers(1, 2**20), st.sampled_from([1, 2**40, 2**59, 2**60])
    )
    steps = []
    for _ in range(draw(st.integers(0, 60))):
        counts = draw(st.lists(weights, min_size=1, max_size=4))
        steps.append((counts, draw(st.integers(0, len(counts) - 1))))
    return steps


@few
@given(sequences())
def test_what_was_encoded_is_decoded_and_takes_its_bits(steps):
    parts = []
    for counts, symbol in steps:
        ends = np.cumsum(counts).tolist()
        parts.append((ends[symbol] - counts[symbol], ends[symbol], ends[-1]))
    code = encode(parts)
    decoder = ArithmeticDecoder(code)
    for counts, symbol in steps:
        ends = np.cumsum(counts).tolist()
        place = decoder.position(ends[-1])
        assert int(np.searchsorted(ends, place, side="right")) == symbol
        decoder.advance(ends[symbol] - counts[symbol], ends[symbol], ends[-1])
    bits = sum(math.log2(total / (high - low)) for low, high, total in parts)
    assert len(code) <= bits / 8 * (1 + 1e-6) + 2


def test_nothing_and_what_is_certain_take_no_bytes():
    assert encode([]) == b""
    assert encode([(0, 1, 1)] * 1000) == b""
    assert encode([(0, MAX_TOTAL - 1, MAX_TOTAL)] * 10_000) == b""


def test_carries_run_through_bytes_of_ones():
    # The upper end again and again makes long runs of 0xFF; then one carry turns them all over.
    highest = [(2**40 - 1, 2**40, 2**40)] * 50
    for end in [(0, 1, 2), (1, 2, 2)]:
        parts = [(1, 3, 4), *[(0, 2**40 - 1, 2**40)] * 3, *highest, end]
        decoder = ArithmeticDecoder(encode(parts))
        for low, high, total in parts:
            assert low <= decoder.position(total) < high
            decoder.advance(low, high, total)


@few
@given(st.binary(max_size=64), st.lists(st.integers(1, MAX_TOTAL), max_size=30))
def test_any_bytes_decode_to_something(data, totals):
    decoder = ArithmeticDecoder(data)
    for total in totals:
        place = decoder.position(total)
        assert 0 <= place < total
        decoder.advance(place, place + 1, total)


@pytest.mark.parametrize(
    "part", [(0, 0, 1), (1, 1, 2), (-1, 1, 2), (0, 3, 2), (2, 1, 3), (0, 1, MAX_TOTAL + 1)]
)
def test_a_part_that_could_not_be_decoded_is_refused(part):
    with pytest.raises(UsageError, match="is no part of"):
        ArithmeticEncoder().encode(*part)


@st.composite
def logits(draw: st.DrawFn) -> torch.Tensor:
    size = draw(st.one_of(st.integers(1, 5), st.sampled_from([255, 256, 257, 600])))
    seed = draw(st.integers(0, 2**31))
    spread = draw(st.sampled_from([0.0, 1.0, 30.0, 1e4]))
    rows = draw(st.integers(1, 3))
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, size, generator=generator) * spread
    if draw(st.booleans()):
        values[:, 1:][torch.rand(rows, size - 1, generator=generator) < 0.3] = -math.inf
    return values.to(draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float64])))


@few
@given(logits(), st.data())
def test_frequencies_are_the_softmax_and_their_parts_tile_the_total(values, data):
    rows, size = values.shape
    frequencies = Frequencies(values)
    cuts = [frequencies.parts(torch.full((rows,), symbol)) for symbol in range(size)]
    low = torch.stack([part.low for part in cuts], dim=1)
    high = torch.stack([part.high for part in cuts], dim=1)
    assert (low[:, 0] == 0).all() and (high[:, -1] == frequencies.total).all()
    assert (low[:, 1:] == high[:, :-1]).all() and (high > low).all()
    assert (frequencies.total < MAX_TOTAL).all()
    expected = values.double().softmax(-1)
    np.testing.assert_allclose(
        (high - low).double() / frequencies.total[:, None], expected, rtol=1e-9, atol=2.0**-59
    )
    symbols = torch.tensor(data.draw(st.lists(st.integers(0, size - 1), min_size=rows)))[:rows]
    for where in (0, -1):  # the first and the last position of a part
        part = frequencies.parts(symbols)
        found = frequencies.find(part.low if where == 0 else part.high - 1)
        assert torch.equal(torch.stack(found), torch.stack(part))


def test_nats_are_those_of_the_softmax():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(5, 400, dtype=torch.float64, generator=generator) * 20
    symbols = torch.tensor([0, 17, 255, 256, 399])
    expected = -values.log_softmax(-1).gather(1, symbols[:, None])[:, 0]
    # Both sides subtract logits of up to 80, each rounded to 2^-47; next to -ln 1 = 0 that is all.
    torch.testing.assert_close(
        Frequencies(values).nats(symbols), expected, rtol=1e-12, atol=2.0**-46
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_told_by_the_total(bad):
    values = torch.zeros(2, 300)
    values[1, 299] = bad
    assert (Frequencies(values).total < 0).tolist() == [False, True]
    assert (Frequencies(torch.full((1, 3), -math.inf)).total < 0).all()


@pytest.mark.parametrize("vocabulary", [8_192, 151_936])
def test_a_large_vocabulary_loses_nothing(vocabulary):
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(200, vocabulary, generator=generator) * 4
    symbols = torch.multinomial(values.softmax(-1), 1, generator=generator)[:, 0]
    encoder = ArithmeticEncoder()
    nats = 0.0
    for row in range(len(values)):
        frequencies = Frequencies(values[row : row + 1])
        part = frequencies.parts(symbols[row : row + 1])
        encoder.encode(int(part.low), int(part.high), int(frequencies.total))
        nats += float(frequencies.nats(symbols[row : row + 1]))
    ideal = nats / math.log(2) / 8
    assert ideal * (1 - 1e-6) <= len(encoder.finish()) <= ideal * (1 + 1e-6) + 2
