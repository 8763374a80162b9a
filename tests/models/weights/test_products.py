import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from core.errors import StorageError
from models.scoring.forward import Forward
from models.weights import products
from models.weights.products import ProductShape, choose_libraries, quick_products
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


def config_of(kind, **changes):
    return type(CONFIGS[kind])(**{**CONFIGS[kind].to_dict(), **changes})


LARGE = config_of("llama", intermediate_size=2**16)
TIMES = {"onednn": 1.0, "mkl": 0.8}


def test_all_layers_have_shapes_and_small_models_none() -> None:
    small = random_model(CONFIGS["gpt2"])
    assert products._shapes_of(small) == set()
    turned = products._shapes_of(random_model(config_of("gpt2", n_embd=512)))
    assert turned == {
        ProductShape(512, 1536, True), ProductShape(512, 512, True), ProductShape(512, 2048, True),
        ProductShape(2048, 512, True), ProductShape(512, 400, False),
    }  # fmt: skip
    hidden = LARGE.hidden_size
    assert {
        ProductShape(hidden, 1024, False),
        ProductShape(2**16, hidden, False),
    } < products._shapes_of(random_model(LARGE))


@pytest.mark.parametrize(
    ("times", "libraries"),
    [({"onednn": 1.0, "mkl": 0.8}, "mkl"), ({"onednn": 1.0, "mkl": 0.9}, "onednn"),
     ({"onednn": 0.5, "mkl": 1.0}, "onednn")],
)  # fmt: skip
def test_mkl_is_taken_if_it_is_clearly_quicker_and_the_choice_is_kept(
    times: dict[str, float], libraries: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(LARGE)
    monkeypatch.setattr(products, "_measure", lambda shapes: dict.fromkeys(shapes, times))
    assert choose_libraries(model, tmp_path) == libraries
    [file] = tmp_path.glob("*.json")
    kept = json.loads(file.read_text())
    assert all(product["seconds"] == times for product in kept["products"])
    assert kept["processor"] == products.describe_processor()
    monkeypatch.setattr(products, "_measure", lambda _: pytest.fail("measured again"))
    assert choose_libraries(random_model(LARGE), tmp_path) == libraries
    monkeypatch.setattr(products, "_measure", lambda shapes: dict.fromkeys(shapes, TIMES))
    for damaged in ("{", "[]", '{"products": [{"library": "mkl"}]}', '{"library": "mkl"}'):
        file.write_text(damaged)
        assert choose_libraries(model, tmp_path) == "mkl"


def test_each_shape_has_a_library_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """oneDNN is slow for one turned weight of GPT-2 with AVX2; only that one is MKL's."""
    slow = ProductShape(512, 2048, True)

    def measure(shapes: list[ProductShape]) -> dict[ProductShape, dict[str, float]]:
        return {shape: {"onednn": 1.5 if shape == slow else 0.9, "mkl": 1.0} for shape in shapes}

    monkeypatch.setattr(products, "_measure", measure)
    model = random_model(config_of("gpt2", n_embd=512))
    forward = Forward(model)
    tokens = torch.arange(40).numpy()
    with Calls() as calls:
        [quick] = forward.losses([tokens], [tokens])
    assert calls.num_quick == 2 * 4 + 1  # four weights of two layers, and the head
    assert choose_libraries(model, tmp_path) == "onednn, mkl for 512x2048"
    with Calls() as calls:
        [other] = forward.losses([tokens], [tokens])
    assert calls.num_quick == 2 * 3 + 1
    torch.testing.assert_close(torch.tensor(other), torch.tensor(quick), rtol=1e-5, atol=1e-5)
    with Calls() as calls:  # another model has no choice
        Forward(random_model(config_of("gpt2", n_embd=512))).losses([tokens], [tokens])
    assert calls.num_quick >= 2 * 4 + 1


def test_a_pass_uses_the_chosen_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(LARGE)
    forward = Forward(model)
    tokens = torch.arange(40).numpy()
    monkeypatch.setattr(products, "_measure", lambda shapes: dict.fromkeys(shapes, TIMES))
    with Calls() as calls:
        [quick] = forward.losses([tokens], [tokens])
        assert calls.num_quick
        number = calls.num_quick
        assert choose_libraries(model, tmp_path) == "mkl"
        [other] = forward.losses([tokens], [tokens])
    assert calls.num_quick == number
    torch.testing.assert_close(torch.tensor(other), torch.tensor(quick), rtol=1e-5, atol=1e-5)


def test_products_of_other_kinds_have_no_choice(tmp_path: Path) -> None:
    assert choose_libraries(random_model(LARGE).double(), tmp_path) is None
    assert choose_libraries(torch.nn.Module(), tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_measurement_has_the_median_time_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6, 0, -1))
    monkeypatch.setattr(products, "_seconds", lambda product: product() is not None and next(clock))
    shapes = [ProductShape(64, 32, is_turned) for is_turned in (False, True)]
    found = products._measure(shapes)
    third = 10**6 - 4 * 3  # four products of the round that warms up, and of the two before
    assert found == {
        shapes[0]: {"onednn": third, "mkl": third - 1},
        shapes[1]: {"onednn": third - 2, "mkl": third - 3},
    }


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "products").write_text("a file in the place of the folder")
    with pytest.raises(StorageError, match="cannot write"):
        choose_libraries(random_model(LARGE), tmp_path / "products")
