"""transformers' tensor parallelism, with our forward pass (docs/adr/0052-tensor-parallelism.md)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from models.scoring.forward import Forward
from tests.forks import ROOT

NUM_RANKS = 2
_RANK = """
import sys
import numpy as np
import torch
from torch import distributed
from transformers import AutoModelForCausalLM
from transformers.distributed import DistributedConfig
from models.scoring.forward import Forward
from tests.models.weights.test_tensor_parallel import rows

folder, rank, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks
)
config = DistributedConfig(tp_plan="auto")
model = AutoModelForCausalLM.from_pretrained(
    folder, dtype=torch.float32, distributed_config=config
).eval()
weight = model.model.layers[0].self_attn.q_proj.weight
share = weight.to_local().numel() / weight.numel()
losses = np.concatenate(Forward(model).losses(*rows()))
np.savez(f"{folder}/rank{rank}.npz", losses=losses, share=share)
distributed.destroy_process_group()
"""


def rows() -> tuple[list[list[int]], list[list[int]]]:
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 97, length).tolist() for length in (31, 17, 24)]
    return [text[:-1] for text in texts], [text[1:] for text in texts]


@pytest.mark.slow  # three processes import transformers; the rest takes a second
def test_two_processes_with_half_of_each_layer_give_the_losses_of_one(tmp_path: Path) -> None:
    config = LlamaConfig(
        vocab_size=97, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    whole = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    expected = np.concatenate(Forward(whole).losses(*rows()))
    ranks = []
    for rank in range(NUM_RANKS):
        told = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(NUM_RANKS)}
        command = [sys.executable, "-c", _RANK, str(tmp_path), str(rank), str(NUM_RANKS)]
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), **told}
        ranks.append(subprocess.Popen(command, cwd=ROOT, env=environment))
    assert [each.wait(timeout=300) for each in ranks] == [0] * NUM_RANKS
    for rank in range(NUM_RANKS):
        found = np.load(tmp_path / f"rank{rank}.npz")
        assert float(found["share"]) == pytest.approx(1 / NUM_RANKS)
        assert found["losses"] == pytest.approx(expected, abs=1e-5)
