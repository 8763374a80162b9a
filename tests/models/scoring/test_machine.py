import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from models.scoring import machine as meter
from models.scoring.machine import active_parameters, matmul_rate, metered


def test_time_is_that_of_the_work():
    with metered(on_cuda=False) as cost:
        time.sleep(0.05)
    assert cost.seconds >= 0.05


@pytest.mark.long
def test_the_peak_is_that_of_the_work_and_not_of_what_was_before():
    before = np.ones(2**26)  # 512 MiB
    del before
    with metered(on_cuda=False) as small:
        pass
    with metered(on_cuda=False) as large:
        held = np.ones(2**25)  # 256 MiB
        held += 1
        del held
    assert small.peak_memory_bytes > 2**20
    assert large.peak_memory_bytes - small.peak_memory_bytes > 0.9 * 2**28
    if _can_reset():
        with metered(on_cuda=False) as again:
            pass
        assert again.peak_memory_bytes < large.peak_memory_bytes - 0.9 * 2**28


def _can_reset() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def test_without_the_kernel_s_figures_the_process_s_own_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(meter, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(meter, "_CLEAR", tmp_path / "no folder" / "clear_refs")
    with metered(on_cuda=False) as cost:
        pass
    assert cost.peak_memory_bytes > 2**20
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t  123456 kB\nVmRSS:\t  1000 kB\n")
    with metered(on_cuda=False) as cost:
        pass
    assert cost.peak_memory_bytes == 123456 * 1024


@pytest.fixture
def packages(tmp_path, monkeypatch):
    monkeypatch.setattr(meter, "_RAPL", tmp_path)
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text("1000000\n")
    return tmp_path


def test_energy_is_that_of_all_packages_and_of_parts_not_again(packages):
    with metered(on_cuda=False) as cost:
        (packages / "intel-rapl:0" / "energy_uj").write_text("3500000\n")
        (packages / "intel-rapl:1" / "energy_uj").write_text("2000000\n")
        (packages / "intel-rapl:0:0" / "energy_uj").write_text("9000000\n")
    assert cost.energy_joules == pytest.approx(3.5)


def test_energy_is_unknown_where_nobody_tells_or_a_counter_wrapped(packages, monkeypatch):
    with metered(on_cuda=False) as cost:
        (packages / "intel-rapl:0" / "energy_uj").write_text("5\n")
    assert cost.energy_joules is None
    (packages / "intel-rapl:1" / "energy_uj").write_text("what?\n")
    for folder in (packages, packages / "nothing"):
        monkeypatch.setattr(meter, "_RAPL", folder)
        with metered(on_cuda=False) as cost:
            pass
        assert cost.energy_joules is None


def test_work_that_fails_fails():
    with pytest.raises(ValueError, match="broken"), metered(on_cuda=False):
        raise ValueError("broken")


@pytest.mark.gpu
def test_a_gpu_s_figures_are_its_own():
    import torch

    with metered(on_cuda=True) as cost:
        held = torch.ones(2**26, device="cuda")
        held += 1
        torch.cuda.synchronize()
    assert cost.peak_memory_bytes >= 2**28
    assert cost.energy_joules is None or cost.energy_joules >= 0


def test_active_parameters_are_those_that_are_multiplied(llama_folder: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(llama_folder)
    embedding = model.get_input_embeddings().weight
    assert active_parameters(model) == model.num_parameters() - embedding.numel()
    model.lm_head.weight = embedding
    assert active_parameters(model) == model.num_parameters()


def test_the_rate_of_products_leaves_the_random_numbers_of_the_caller_alone() -> None:
    matmul_rate.cache_clear()
    state = torch.get_rng_state()
    rate = matmul_rate(torch.device("cpu"), torch.float32)
    assert rate is not None
    assert rate > 0
    assert torch.equal(torch.get_rng_state(), state)
