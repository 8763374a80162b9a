import pytest
import torch
from transformers import AutoModelForCausalLM

from core.errors import ModelLoadError
from models.weights.files import Weights
from models.weights.loading import does_not_fit, place, plan_placement

GIB = 2**30
WEIGHTS = Weights(num_tensors=100, num_elements=7 * GIB, num_bytes=14 * GIB)


@pytest.mark.parametrize(
    ("device", "dtype", "free", "is_quantised", "expected"),
    [
        ("cpu", torch.float32, [], False, None),
        ("cpu", torch.float32, [], True, None),
        ("cuda", torch.bfloat16, [16 * GIB, 16 * GIB], False, None),
        ("cuda", torch.bfloat16, [15 * GIB, 16 * GIB], False, "auto"),
        ("cuda", torch.float32, [16 * GIB, 16 * GIB], False, "auto"),
        ("cuda", torch.float32, [16 * GIB], False, None),  # one device: it may fit after all
        ("cuda:1", torch.float32, [16 * GIB, 16 * GIB], False, None),
        ("cuda", torch.float32, [16 * GIB, 16 * GIB], True, "cuda"),  # they stay as in the files
        ("cuda", torch.bfloat16, [8 * GIB, 8 * GIB], True, "auto"),
        ("cuda:1", torch.bfloat16, [8 * GIB, 8 * GIB], True, "cuda:1"),
    ],
)
def test_weights_are_spread_where_one_device_has_no_room(
    device, dtype, free, is_quantised, expected, monkeypatch
):
    monkeypatch.setattr("models.weights.loading.free_bytes", lambda: free)
    assert plan_placement(torch.device(device), dtype, WEIGHTS, is_quantised) == expected


def test_pickles_are_taken_by_their_size(monkeypatch):
    monkeypatch.setattr("models.weights.loading.free_bytes", lambda: [15 * GIB, 15 * GIB])
    pickles = Weights(None, None, 14 * GIB)
    assert plan_placement(torch.device("cuda"), torch.float32, pickles, False) == "auto"


def test_room_is_left_for_more_than_the_weights():
    assert not does_not_fit(100, [111, 111])
    assert does_not_fit(100, [109, 109])
    assert not does_not_fit(100, [109])


def test_a_model_goes_to_its_device_and_a_spread_one_stays(llama_folder):
    model = AutoModelForCausalLM.from_pretrained(llama_folder)
    assert place(model, torch.device("cpu"), None) is model
    model.hf_device_map = {"": "cpu"}
    assert place(model, torch.device("meta"), None).device.type == "cpu"


def test_a_model_that_does_not_fit_is_an_error_of_loading(llama_folder, monkeypatch):
    model = AutoModelForCausalLM.from_pretrained(llama_folder)

    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(model, "to", refuse)
    with pytest.raises(ModelLoadError, match="do not fit into the memory of cuda"):
        place(model, torch.device("cuda"), None)


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_a_model_is_spread_over_several_gpus(llama_folder, settings, monkeypatch):
    import numpy as np

    from models.scoring.forward import Forward
    from models.weights.checkpoint import open_checkpoint
    from models.weights.loading import load_weights

    files = open_checkpoint(llama_folder, None, settings.model_copy(update={"device": "cuda"}))
    ids = [np.arange(30) % 400]
    alone = Forward(load_weights(files)).losses(ids, [ids[0][1:]])
    monkeypatch.setattr("models.weights.loading.does_not_fit", lambda needed, free: True)
    model = load_weights(files)
    assert len(set(model.hf_device_map.values())) > 1
    spread = Forward(model).losses(ids, [ids[0][1:]])
    np.testing.assert_allclose(spread[0], alone[0], rtol=2e-2)
