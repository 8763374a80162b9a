import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from models.scoring.protocols import get_protocol
from models.scoring.start_check import find_need_of_start
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import BatchOf

PLAIN = 1.25


class StartBound:
    """An engine whose tokens cost 1.25 nats after the start token, and another sum without it."""

    def __init__(self, start: int, bare: float) -> None:
        self.start, self.bare = start, bare
        self.longest = 0  # tokens of an input of the last call

    def losses(
        self, inputs: Sequence[Any], targets: Sequence[Any], alphabet: Any = None
    ) -> list[Any]:
        self.longest = max(map(len, inputs))
        cost = [PLAIN if row[0] == self.start else self.bare for row in inputs]
        return [np.full(len(row), each) for row, each in zip(targets, cost, strict=True)]


@pytest.fixture
def scorer(llama_folder: str, settings: Any) -> CausalLM:
    return CausalLM.load(llama_folder, None, settings)


def test_a_need_is_stated_in_nats(scorer: CausalLM) -> None:
    model = scorer.text_model
    assert model.start_token is not None
    engine: Any = StartBound(model.start_token, 9.75)
    stated = f"needed: 1.2 nats a token after {model.start_text}, 9.8 bare"
    assert find_need_of_start(engine, model, None) == stated
    assert find_need_of_start(engine, model, 8) == stated
    assert engine.longest < 8  # the call without the start token is the last one


@pytest.mark.parametrize("bare", [PLAIN, PLAIN + 0.9, 0.5, float("nan")])
def test_a_little_less_context_is_no_need(bare: float, scorer: CausalLM) -> None:
    model = scorer.text_model
    assert model.start_token is not None
    engine: Any = StartBound(model.start_token, bare)
    assert find_need_of_start(engine, model, None) is None


def test_a_protocol_without_the_start_token_gives_a_warning(
    llama_folder: str, settings: Any, batch_of: BatchOf, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = CausalLM.load(llama_folder, None, settings)
    assert "start" not in scorer.facts.versions
    scorer.facts.versions["start"] = "needed: 1.2 nats a token after <s>, 9.8 bare"
    with caplog.at_level(logging.WARNING, logger="models.scoring.token_scorer"):
        list(scorer.score([batch_of("some text")], get_protocol("default")))
        assert caplog.messages == []
        list(scorer.score([batch_of("some text")], get_protocol("uncheatable-32")))
    (message,) = caplog.messages
    assert "protocol uncheatable-32 puts no start token before a window" in message
    assert "9.8 bare" in message
