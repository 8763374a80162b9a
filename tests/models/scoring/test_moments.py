import math

import numpy as np
import pytest
import torch

from core.settings import Settings
from models.scoring.moments import log_moments
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import SENTENCES, BatchOf, Plain


def test_moments_of_distributions_that_can_be_computed_by_hand() -> None:
    half_quarters = torch.tensor([[0.5, 0.25, 0.25, 0.0]]).log()
    [[mean, variance]] = log_moments(half_quarters).tolist()
    # ln p is -ln 2 or -2 ln 2, each with probability 1/2.
    assert mean == pytest.approx(-1.5 * math.log(2), rel=1e-6)
    assert variance == pytest.approx(0.25 * math.log(2) ** 2, rel=1e-6)
    certain = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    assert log_moments(certain).tolist() == [[0.0, 0.0]]
    [[mean, variance]] = log_moments(torch.zeros(1, 8)).tolist()
    assert (mean, variance) == (pytest.approx(-math.log(8)), pytest.approx(0, abs=1e-30))


def test_a_small_variance_keeps_its_digits_at_a_large_mean() -> None:
    logits = torch.zeros(1, 2**18, dtype=torch.float64)
    logits[0, 0] = 1e-6  # the mean square less the squared mean would lose this against 155
    share = 1 / 2**18
    expected = 1e-12 * share * (1 - share)
    assert float(log_moments(logits)[0, 1]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("folder", ["llama_folder", "opt_folder", "startless_folder"])
def test_moments_are_those_of_the_models_distributions(
    folder: str, request: pytest.FixtureRequest, batch_of: BatchOf
) -> None:
    """With a separate head, with one inside, and with a first token that nothing precedes."""
    path = request.getfixturevalue(folder)
    model = CausalLM.load(path, None, Settings(device="cpu", dtype="float64"))
    chosen = frozenset({"d0"})
    way = get_protocol("disjoint-16")
    traced = model.trace([batch_of(*SENTENCES)], way, chosen, with_moments=True)
    plain = Plain(path)
    for each in traced:
        start, nats = model.text_model.prefix(way), each.scored.nats
        ids = [*start, *each.tokens.ids[each.first : each.first + len(nats)].tolist()]
        with torch.no_grad():
            logits = plain._model(input_ids=torch.tensor([ids[:-1]])).logits[0]
        logs = logits.log_softmax(-1).numpy()
        mean = (np.exp(logs) * logs).sum(-1)
        variance = (np.exp(logs) * (logs - mean[:, None]) ** 2).sum(-1)
        expected = np.column_stack([mean, variance])
        found = np.array(each.scored.moments)
        assert found[-len(expected) :] == pytest.approx(expected, rel=1e-7)
        assert np.isnan(found[:, 0]).sum() == (0 if start else 1)
    assert {each.document_id for each in traced} == chosen
