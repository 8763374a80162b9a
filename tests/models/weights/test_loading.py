import pytest
from transformers import GPT2Config

from core.errors import ModelLoadError
from models.scoring.machine import metered
from models.weights.files import Weights
from models.weights.loading import require_plausible
from tests.models.conftest import llama_config

NUM = 2**20
WEIGHTS = Weights(num_tensors=30, num_elements=NUM, num_bytes=4 * NUM)


def test_what_the_weights_can_hold_passes():
    require_plausible(llama_config(), WEIGHTS, "m", is_quantised=False)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (llama_config(num_hidden_layers=31), "num_hidden_layers = 31.*30 tensors"),
        (GPT2Config(n_layer=31), "n_layer = 31"),
        (llama_config(vocab_size=10**9), "config.json describes a model of 64,0"),
        (llama_config(hidden_size=2**20), "config.json describes"),
        (llama_config(vocab_size=-5), "cannot be created"),
    ],
)
def test_far_more_than_the_weights_hold_is_refused_without_taking_memory(config, says):
    with metered(on_cuda=False) as before:  # a former peak of this process does not count
        pass
    with (
        metered(on_cuda=False) as cost,
        pytest.raises(ModelLoadError, match=f"m: .*{says}"),
    ):
        require_plausible(config, WEIGHTS, "m", is_quantised=False)
    assert cost.peak_memory_bytes - before.peak_memory_bytes < 200 * 2**20


def test_packed_weights_may_be_more_than_their_files_count():
    config = llama_config(vocab_size=2**23)  # 2^28 in embedding, and in head
    packed = Weights(num_tensors=30, num_elements=2**26, num_bytes=2**28)
    require_plausible(config, packed, "m", is_quantised=True)
    with pytest.raises(ModelLoadError, match="not of the same model"):
        require_plausible(config, packed, "m", is_quantised=False)


def test_pickles_are_taken_at_their_word():
    config = llama_config(vocab_size=10**9)
    require_plausible(config, Weights(None, None, 10), "m", is_quantised=False)
