"""Tiny GGUF files, written by hand from the description of the format."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

HIDDEN = 32
LAYERS = 2
HEADS = 2
WIDE = 64
PIECES = ["▁", "t", "h", "e", "i", "d", "s", "▁t", "▁th", "▁the", "▁ti", "▁tid", "de", "▁tide"]
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TOKENS = ["<unk>", "<s>", "</s>", *_BYTES, *PIECES]
# Gemma's tokenizer adds those of its special tokens that a vocabulary lacks.
GEMMA_TOKENS = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *_BYTES, *PIECES]
_NUMBERS = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
}
_NORMS = {
    "llama": {"post_attention_layernorm": "ffn_norm"},
    "gemma3": {
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
    },
}


def make_model(kind: str) -> PreTrainedModel:
    """Make a model with random weights, so large that its losses differ from ln(vocabulary)."""
    torch.manual_seed(5)
    sizes: dict[str, Any] = {
        "vocab_size": len(GEMMA_TOKENS if kind == "gemma3" else TOKENS),
        "hidden_size": HIDDEN,
        "intermediate_size": WIDE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6,
    }
    model: PreTrainedModel
    if kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=False))
    else:
        model = Gemma3ForCausalLM(Gemma3TextConfig(**sizes, sliding_window=16))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def metadata_of(kind: str, **changes: Any) -> dict[str, Any]:
    own = {
        "context_length": 128,
        "embedding_length": HIDDEN,
        "block_count": LAYERS,
        "feed_forward_length": WIDE,
        "attention.head_count": HEADS,
        "attention.head_count_kv": 1,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.key_length": HIDDEN // HEADS,
        "rope.dimension_count": HIDDEN // HEADS,
    }
    if kind == "gemma3":
        own |= {"attention.sliding_window": 16, "rope.freq_base": 1e6}
    tokens = GEMMA_TOKENS if kind == "gemma3" else TOKENS
    num_special = len(tokens) - len(PIECES) - len(_BYTES)
    special = {"bos": 2, "eos": 1, "unknown": 3} if kind == "gemma3" else {
        "bos": 1, "eos": 2, "unknown": 0}  # fmt: skip
    scores = [0.0] * (len(tokens) - len(PIECES)) + [-float(rank) for rank in range(len(PIECES))]
    return {
        "general.architecture": kind,
        **{f"{kind}.{key}": value for key, value in own.items()},
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [*[3] * num_special, *[6] * 256, *[1] * len(PIECES)],
        **{f"tokenizer.ggml.{name}_token_id": number for name, number in special.items()},
        "tokenizer.ggml.add_bos_token": True,
    } | changes


def tensors_of(model: PreTrainedModel, kind: str) -> dict[str, np.ndarray]:
    """Return the tensors as converters of llama.cpp store them, by their names in a GGUF file."""
    found = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and kind == "gemma3":
            continue  # tied to the embedding
        array = tensor.numpy()
        if kind == "gemma3" and "norm" in name:
            array = array + 1
        if kind == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = HEADS if "q_proj" in name else 1
            pairs = array.reshape(heads, 2, array.shape[0] // heads // 2, HIDDEN)
            array = pairs.swapaxes(1, 2).reshape(array.shape)
        found[_renamed(name, kind)] = np.ascontiguousarray(array)
    return found


def _renamed(name: str, kind: str) -> str:
    stem = name.removesuffix(".weight")
    for own, other in (_NAMES | _NORMS[kind]).items():
        if stem == own or stem.endswith(f".{own}"):
            stem = stem.removesuffix(own) + other
            break
    return f"{stem.replace('model.layers.', 'blk.')}.weight"


def round_to_q8(array: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Return an array as blocks of Q8_0, and the array that the blocks stand for.

    A block is a scale in float16 and 32 numbers of 8 bits.
    """
    blocks = array.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    numbers = np.round(blocks / np.maximum(scales.astype(np.float32), 1e-8)).astype(np.int8)
    raw = b"".join(s.tobytes() + n.tobytes() for s, n in zip(scales, numbers, strict=True))
    return raw, (scales.astype(np.float32) * numbers).reshape(array.shape).astype(np.float32)


def write_gguf(
    path: Path,
    metadata: dict[str, Any],
    tensors: dict[str, np.ndarray],
    packed: dict[str, bytes] | None = None,
    type_number: int = 8,
) -> Path:
    """Write a file; ``packed`` has the blocks of quantised tensors, of the type given."""
    packed = packed or {}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items())
    data = b""
    for name, array in tensors.items():
        head += _string(name) + struct.pack("<I", array.ndim)
        head += struct.pack(f"<{array.ndim}Q", *reversed(array.shape))
        head += struct.pack("<IQ", type_number if name in packed else 0, len(data))
        raw = packed.get(name, array.astype("<f4").tobytes())
        data += raw + b"\0" * (-len(raw) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, list):
        if isinstance(value[0], str):
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))
        kind, form = _NUMBERS[type(value[0])]
        return struct.pack(f"<IIQ{len(value)}{form}", 9, kind, len(value), *value)
    kind, form = _NUMBERS[type(value)]
    return struct.pack(f"<I{form}", kind, value)
