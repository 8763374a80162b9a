"""A tiny language model, trained in seconds to write lists of numbers for any prompt."""

import random
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_CONTEXT = 320
_WINDOW = 160  # in training
_NUMBERS = 100
_WORDS = ["<unk>", "<s>", "</s>", "[", "]", ",", *map(str, range(_NUMBERS))]
_IDS = {word: number for number, word in enumerate(_WORDS)}


def train_list_writer(folder: Path, steps: int = 120) -> Path:
    """Train and write the model: numbers below 100, brackets, commas, one unknown word."""
    tokenizer = Tokenizer(WordLevel(_IDS, unk_token="<unk>"))
    words = pre_tokenizers.Split(Regex(r"\d+|[\[\],]|[^\s\d\[\],]+"), "removed", invert=True)
    tokenizer.pre_tokenizer = words
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(_WORDS),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=_CONTEXT,
        bos_token_id=_IDS["<s>"],
        eos_token_id=_IDS["</s>"],
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    rng = random.Random(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=steps)
    for _ in range(steps):
        ids = torch.tensor([_text(rng) for _ in range(8)])
        loss = model(input_ids=ids, labels=ids.masked_fill(ids == _IDS["<unk>"], -100)).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    model.save_pretrained(folder)
    return folder


def _text(rng: random.Random) -> list[int]:
    ids = [_IDS["<unk>"]] * rng.randint(10, _WINDOW // 2)
    while len(ids) < _WINDOW:
        numbers = [rng.randrange(_NUMBERS) for _ in range(rng.randint(4, 9))]
        shown = ",".join(map(str, numbers)).replace(",", " , ").split()
        ids += [_IDS["["], *(_IDS[word] for word in shown), _IDS["]"]]
    return ids[:_WINDOW]
