import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from models.scoring.forward import Forward
from models.weights.products import quick_products
from tests.models.conftest import random_model
from tests.models.scoring.test_forward import CONFIGS


class Calls(TorchDispatchMode):
    """Counts the matrix products of oneDNN."""

    num_quick = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.num_quick += "mkldnn._linear_pointwise" in str(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("kind", "products"), [("llama", 2 * 7 + 1), ("gpt2", 2 * 4 + 1), ("opt", 2 * 6 + 1)]
)
def test_all_products_of_a_pass_run_in_onednn(kind, products):
    forward, tokens = Forward(random_model(CONFIGS[kind])), torch.arange(40).numpy()
    with Calls() as calls:
        forward.losses([tokens], [tokens])
    assert calls.num_quick == products  # of two layers and the head


@torch.inference_mode()
def test_products_are_those_in_float64():
    torch.manual_seed(0)
    wide, weight, bias = torch.randn(3, 40, 2 * 96), torch.randn(200, 96), torch.randn(200)
    for states in (wide[..., :96].contiguous(), wide[..., 96:], wide[:, :, :96].transpose(0, 1)):
        with quick_products(states), Calls() as calls:
            found = functional.linear(states, weight, bias)
        assert calls.num_quick == 1
        exact = functional.linear(states.double(), weight.double(), bias.double())
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)


def test_what_onednn_does_not_suit_is_left_to_torch():
    states, weight = torch.randn(20, 8), torch.randn(4, 8)
    with Calls() as calls:
        with quick_products(states):
            functional.linear(states, weight.requires_grad_()).sum().backward()
        with torch.inference_mode(), quick_products(states):
            functional.linear(states[:15], weight)
            functional.linear(states.double(), weight.double())
            torch.addmm(torch.randn(20, 1), states, weight.t())
    assert weight.grad is not None and calls.num_quick == 0
