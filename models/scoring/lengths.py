"""Lengths in tokens at which a model changes how it reads a row.

LongRoPE has one set of frequencies for rows up to a length and another for longer rows. Dynamic NTK
computes them from the length. transformers chooses them by the longest row of a batch, so
that a row's losses would depend on the rows beside it. ``sides`` divides a batch into parts whose
rows have the same frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from transformers import PreTrainedConfig

# Keys of a configuration for attention windows. A mask argument replaces the mask of a layer with
# such a window, so a row with a mask argument must not be longer than the window.
_WINDOWS = (
    "sliding_window",
    "sliding_window_size",
    "attention_window_size",
    "attention_chunk_size",
    "window_size",
    "local_window_size",
    "local_attention",
)
# Keys for other lengths at which a model may compute otherwise.
_OTHERS = (
    "original_max_position_embeddings",
    "chunk_size",
    "mamba_chunk_size",
    "block_size",
    "local_attn_chunk_length",
    "lsh_attn_chunk_length",
    "seq_length",
)
_LONGROPE = ("longrope", "su")
_MAXIMA = ("max_position_embeddings", "seq_length")


class Switch(NamedTuple):
    """A length after which a model has other frequencies, or others for every length."""

    length: int
    is_dynamic: bool = False


def attention_windows(config: PreTrainedConfig) -> list[int]:
    """Return the lengths in tokens of all attention windows that a configuration states."""
    return _values(config.get_text_config(), _WINDOWS)


def row_limits(config: PreTrainedConfig) -> list[int]:
    """Return the lengths that a row with several texts must not exceed."""
    switch = find_switch(config)
    return attention_windows(config) + ([] if switch is None else [switch.length])


def stated_lengths(config: PreTrainedConfig) -> list[int]:
    """Return all lengths that a configuration states at which the model may change, in order."""
    text_config = config.get_text_config()
    lengths = {*_values(text_config, (*_WINDOWS, *_OTHERS))}
    for rope in _ropes(text_config):
        lengths |= {*_integers([rope.get("original_max_position_embeddings")])}
    switch = find_switch(config)
    if switch is not None:
        lengths.add(switch.length)
    return sorted(lengths)


def find_switch(config: PreTrainedConfig) -> Switch | None:
    """Return the length after which the frequencies of positions change, or None without one."""
    text_config = config.get_text_config()
    for rope in _ropes(text_config):
        kind = str(rope.get("rope_type", rope.get("type")))
        stated = [rope.get("original_max_position_embeddings")]
        stated += [getattr(text_config, "original_max_position_embeddings", None)]
        maxima = [getattr(text_config, name, None) for name in _MAXIMA]
        if kind in _LONGROPE:
            return Switch(min(_integers(stated) or _integers(maxima), default=1))
        if "dynamic" in kind:
            return Switch(min(_integers([*stated, *maxima]), default=1), is_dynamic=True)
    if getattr(text_config, "use_dynamic_ntk", False) is True:  # the first Qwen
        maxima = [getattr(text_config, name, None) for name in _MAXIMA]
        return Switch(min(_integers(maxima), default=1), is_dynamic=True)
    return None


def sides(lengths: Sequence[int], switch: Switch | None) -> list[list[int]]:
    """Divide the rows of a batch into parts that a model reads alike; return indices of rows."""
    parts: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        side = 0
        if switch is not None and switch.is_dynamic and length >= switch.length:
            side = length
        elif switch is not None and length > switch.length:
            side = 1
        parts.setdefault(side, []).append(row)
    return list(parts.values())


def _ropes(config: PreTrainedConfig) -> list[dict[str, object]]:
    """Return the settings of rotary positions; some models have several, by kind of layer."""
    stated = getattr(config, "rope_parameters", None)  # also has what a file calls rope_scaling
    if not isinstance(stated, dict):
        return []
    return [stated, *(each for each in stated.values() if isinstance(each, dict))]


def _values(config: PreTrainedConfig, names: Sequence[str]) -> list[int]:
    return _integers([getattr(config, name, None) for name in names])


def _integers(values: Sequence[object]) -> list[int]:
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return [value for value in whole if value > 0]
