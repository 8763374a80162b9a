import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from models.scoring.forward import Forward
from models.weights.products import has_onednn, quick_products
from tests.models.conftest import random_model
from tests.models.scoring.test_forward import CONFIGS


class Calls(TorchDispatchMode):
    """Counts the matrix products of torch and of oneDNN."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))

    def count(self, *names: str) -> int:
        return sum(any(name in each for name in names) for each in self.names)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "opt"])
def test_all_products_of_a_pass_run_in_onednn(kind):
    forward = Forward(random_model(CONFIGS[kind]))
    tokens = torch.arange(40).numpy()
    assert has_onednn()
    with Calls() as calls:
        forward.losses([tokens], [tokens])
    assert calls.count("mkldnn._linear_pointwise") >= 2 * 4
    assert calls.count("addmm", "aten.mm", "aten.linear") == 0


@torch.inference_mode()
@pytest.mark.parametrize("has_bias", [True, False])
def test_products_are_those_in_float64(has_bias):
    torch.manual_seed(0)
    wide = torch.randn(3, 40, 2 * 96)
    weight, bias = torch.randn(200, 96), torch.randn(200) if has_bias else None
    for states in (wide[..., :96].contiguous(), wide[..., 96:], wide[:, :, :96].transpose(0, 1)):
        exact = functional.linear(
            states.double(), weight.double(), None if bias is None else bias.double()
        )
        with quick_products(states), Calls() as calls:
            found = functional.linear(states, weight, bias)
        assert calls.count("mkldnn._linear_pointwise") == 1
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)


def test_what_onednn_does_not_suit_is_left_to_torch():
    states, weight = torch.randn(20, 8), torch.randn(4, 8)
    with Calls() as calls:
        with quick_products(states):
            functional.linear(states, weight.requires_grad_()).sum().backward()
        with torch.inference_mode(), quick_products(states):
            functional.linear(states[:15], weight)
            functional.linear(states.double(), weight.double())
            functional.linear(states, weight[0])
            torch.addmm(torch.randn(20, 1), states, weight.t())
    assert weight.grad is not None
    assert calls.count("mkldnn._linear_pointwise") == 0
