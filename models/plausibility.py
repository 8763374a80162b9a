"""Whether a configuration is true of its weights: before anything of its size is made, and after.

A config.json is untrusted: one that states a vocabulary of a billion, or a million layers, would
otherwise fill the memory before the mismatch is found.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from core.errors import ModelLoadError
from models.failures import MODEL_FAILURES, first_line
from models.model_files import Weights

# Tables that are computed, not stored (of positions, masks), may come on top of the weights.
_NUM_COMPUTED = 2**28
_MOST_EXPERTS = 2**16
_MOST_PER_BYTE = 8  # of quantised weights: one bit each


def require_plausible(
    config: PreTrainedConfig, weights: Weights, location: str, is_quantised: bool
) -> None:
    """Refuse a configuration that states far more than the weights have.

    Twice as much passes: loading the weights then names what is missing.

    Raises:
        ModelLoadError: it does, or no model can be made of it.
    """
    if weights.num_tensors is None or weights.num_elements is None:
        return  # pickles, whose makers are trusted with more than that
    _require_counts(config, weights.num_tensors, location)
    most = weights.num_bytes * _MOST_PER_BYTE if is_quantised else 2 * weights.num_elements
    stated = _count_elements(config, location)
    if stated > most + _NUM_COMPUTED:
        raise ModelLoadError(
            f"{location}: config.json describes a model of {stated:,} numbers and the weights have "
            f"{weights.num_elements:,}; they are not of the same model"
        )


def require_complete(loading: Mapping[str, Any], location: str) -> None:
    """Refuse weights that lack tensors of the model, or have some of another shape.

    Args:
        loading: what transformers tells of loading them.
        location: for messages.

    Raises:
        ModelLoadError: there are such tensors; names the first.
    """
    if mismatched := sorted(loading["mismatched_keys"]):
        name, found, expected = mismatched[0]
        raise ModelLoadError(
            f"{location}: the weights do not fit config.json in {len(mismatched)} tensors, the "
            f"first is {name}: it has shape {tuple(found)}, expected {tuple(expected)}"
        )
    if missing := sorted(loading["missing_keys"]):
        raise ModelLoadError(
            f"{location}: {len(missing)} tensors are missing from the weights, the first is "
            f"{missing[0]}; the model would be scored with random numbers in their place"
        )


def _require_counts(config: PreTrainedConfig, num_tensors: int, location: str) -> None:
    """Check what is made one by one, and takes memory even without its numbers."""
    for key, value in config.get_text_config().to_dict().items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        limit = (
            num_tensors
            if re.search("layer|block", key)
            else _MOST_EXPERTS
            if "expert" in key
            else math.inf
        )
        if value > limit and key.startswith(("n", "num", "encoder", "decoder")):
            raise ModelLoadError(
                f"{location}: config.json states {key} = {value:,}, and there are {num_tensors:,} "
                "tensors in the weights; they are not of the same model"
            )


def _count_elements(config: PreTrainedConfig, location: str) -> int:
    """Count the numbers of the model that a configuration describes; they are not made."""
    try:
        with torch.device("meta"):
            # Another attention than the config may ask for, whose library need not be here.
            model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
                copy.deepcopy(config), attn_implementation="eager"
            )
    except MODEL_FAILURES as error:
        raise ModelLoadError(
            f"{location}: no model can be made as config.json describes it ({first_line(error)})"
        ) from error
    return sum(tensor.numel() for tensor in itertools.chain(model.parameters(), model.buffers()))
