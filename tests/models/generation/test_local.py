import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, MistralConfig

from core.errors import NotMeasurable
from core.responses import answering_part
from core.settings import Settings
from models import backends
from models.catalogue import ModelEntry
from models.generation import Decoding, Generation, GenerationRequest
from models.generation import cached_rows as growing_cache
from models.generation.batch import StopText, TokenChoice
from models.generation.cached_rows import RowModel, Rows
from models.generation.local import (
    LocalGenerator,
    Prompted,
    decode_of,
    generation_identity,
    load_generator,
    prepare,
)
from models.scoring.scorer import Tokens
from models.servers.budget import Budget
from tests.models.conftest import (
    SENTENCES,
    CopyOf,
    byte_level_bpe,
    llama_config,
    save_model,
    set_template,
)

PROMPTS = [
    "The tide",
    "Models read what was written before them",
    "def add(a",
    "Ein naïver Café-Besuch",
    "the sand, and the next tide washes it",
]
SAMPLED = Decoding(20, min_new_tokens=3, temperature=0.9, top_p=0.95, top_k=60)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("writers")
    configs = {
        "llama": llama_config(),
        "gpt2": GPT2Config(vocab_size=400, n_embd=32, n_layer=2, n_head=2, n_positions=64),
        "windows": MistralConfig(**llama_config().to_dict() | {"sliding_window": 12}),
    }
    return {
        name: save_model(root / name, config, byte_level_bpe(), bos_token="<s>", eos_token="</s>")
        for name, config in configs.items()
    }


@pytest.fixture(scope="module")
def llama(folders: dict[str, str]) -> LocalGenerator:
    return load(folders["llama"])


def load(folder: str | Path) -> LocalGenerator:
    entry = ModelEntry(name="tiny", location=str(folder))
    return load_generator(entry, Settings(device="cpu"))


def asked(prompts: Sequence[str]) -> list[GenerationRequest]:
    return [GenerationRequest(str(n), prompt, 100 + n) for n, prompt in enumerate(prompts)]


def written(
    generator: LocalGenerator, requests: Sequence[GenerationRequest], decoding: Decoding
) -> list[Generation]:
    found = list(generator.generate(requests, decoding))
    by_key = {each.key: each for each in found}
    assert len(found) == len(by_key) == len(requests)
    return [by_key[request.key] for request in requests]


def theirs(folder: str, prompts: Sequence[str], options: dict[str, Any]) -> list[str]:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    texts = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        output = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=1,
            pad_token_id=1, **options,
        )  # fmt: skip
        texts.append(tokenizer.decode(output[0][ids.shape[1] :], skip_special_tokens=True))
    return texts


def tokens_of(generator: LocalGenerator, prompt: str) -> Tokens:
    endless = replace(generator._identity, context=None)
    request = GenerationRequest("", prompt, 0)
    ready = prepare(endless, generator._text_model, request, Decoding(1))
    assert isinstance(ready, Prompted)
    return ready.tokens


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("llama", {}),
        ("llama", {"repetition_penalty": 1.3, "min_new_tokens": 12}),
        ("gpt2", {"repetition_penalty": 1.3}),  # absolute positions
        ("windows", {}),  # of attention, shorter than a text
        ("opt", {}),  # positions from the mask
        ("mamba", {}),  # a running state
    ],
)
def test_greedy_texts_are_those_of_transformers(
    name: str,
    options: dict[str, Any],
    folders: dict[str, str],
    request: pytest.FixtureRequest,
) -> None:
    folder = folders.get(name) or request.getfixturevalue(f"{name}_folder")
    generator = load(folder)
    generator._ends = [1]
    options = options | {"max_new_tokens": 16}
    found = written(generator, asked(PROMPTS), Decoding(**options))
    assert [each.text for each in found] == theirs(folder, PROMPTS, options)
    assert len({each.text for each in found}) > 3  # they have something to say


def test_a_text_is_the_same_alone_and_beside_others(llama: LocalGenerator) -> None:
    text = " ".join(SENTENCES)
    requests = asked([text[: 2 + 2 * n] for n in range(16)])
    together = written(llama, requests, SAMPLED)
    assert llama._rows.is_batched
    assert [written(llama, [each], SAMPLED)[0] for each in requests] == together
    assert written(llama, requests[::-1], SAMPLED)[::-1] == together
    assert len({each.text for each in together}) == 16
    reseeded = [replace(each, seed=each.seed + 1) for each in requests]
    assert all(
        one.text != other.text
        for one, other in zip(written(llama, reseeded, SAMPLED), together, strict=True)
    )


def test_a_model_with_a_running_state_writes_one_text_at_a_time(mamba_folder: str) -> None:
    generator = load(mamba_folder)
    assert not generator._rows.is_batched
    together = written(generator, asked(PROMPTS), SAMPLED)
    assert [written(generator, [each], SAMPLED)[0] for each in asked(PROMPTS)] == together


def first_logits(folder: str, prompt: str) -> torch.Tensor:
    """Return the logits of the token after a prompt, by one plain pass; (vocabulary,)."""
    ids = AutoTokenizer.from_pretrained(folder)(prompt, return_tensors="pt")["input_ids"]
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        logits: torch.Tensor = model(ids).logits[0, -1]
    return logits


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(1, temperature=0.7),
        Decoding(1, temperature=1.5, top_k=12),
        Decoding(1, temperature=1.2, top_p=0.8),
        Decoding(1, temperature=1.5, top_k=20, top_p=0.7, repetition_penalty=1.4),
    ],
)
def test_first_tokens_are_as_frequent_as_their_probabilities(
    decoding: Decoding, folders: dict[str, str], llama: LocalGenerator
) -> None:
    prompt = "The tide"
    logits = first_logits(folders["llama"], prompt)
    read = set(AutoTokenizer.from_pretrained(folders["llama"])(prompt)["input_ids"])
    weights = {}
    for token, logit in enumerate(logits.tolist()):
        if token in read:
            penalty = decoding.repetition_penalty
            logit = logit / penalty if logit > 0 else logit * penalty
        weights[token] = math.exp(logit / decoding.temperature)
    expected: dict[int, float] = {}
    ranked = sorted(weights, key=lambda token: -weights[token])[: decoding.top_k]
    whole = sum(weights[token] for token in ranked)
    for token in ranked:
        if sum(expected.values()) < decoding.top_p:
            expected[token] = weights[token] / whole
    share = sum(expected.values())
    rows = 4000
    choice = TokenChoice(decoding, [np.array(sorted(read))] * rows, range(rows), [])
    chosen, is_broken = choice.choose(logits.expand(rows, -1))
    counts = Counter(chosen.tolist())
    assert not is_broken.any()
    assert set(counts) <= set(expected)
    often = [token for token in expected if rows * expected[token] / share >= 5]
    wanted = np.array([rows * expected[token] / share for token in often])
    found = np.array([counts[token] for token in often])
    statistic = float(((found - wanted) ** 2 / wanted).sum())
    # Of 1 in 10,000, by Wilson and Hilferty's approximation of chi-square.
    freedom = len(often) - 1
    assert len(often) > 4
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3
    (drawn,) = written(llama, [GenerationRequest("one", prompt, 7)], decoding)
    assert drawn.text == llama._decode([int(chosen[7])])  # the loop draws as this does


def test_a_draw_takes_the_token_in_whose_share_the_number_falls() -> None:
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log().expand(500, -1)
    chosen, _ = TokenChoice(
        Decoding(1, temperature=1.0), [np.array([0])] * 500, range(500), []
    ).choose(logits)
    numbers = [np.random.Generator(np.random.Philox(key=seed)).random() for seed in range(500)]
    assert chosen.tolist() == [int(np.searchsorted([0.1, 0.3, 0.6], each)) for each in numbers]


def test_a_row_without_finite_likelihoods_is_told_and_its_neighbours_go_on() -> None:
    nan, inf = math.nan, math.inf
    logits = torch.tensor([[0.0, 1], [nan, 1], [inf, 1], [-inf, -inf], [-inf, 0]])
    for decoding in (Decoding(1), Decoding(1, temperature=1.0, top_k=1)):
        chosen, is_broken = TokenChoice(decoding, [np.array([0])] * 5, range(5), []).choose(logits)
        assert is_broken.tolist() == [False, True, True, True, False]
        assert chosen[[0, 4]].tolist() == [1, 1]


def test_a_prompt_that_a_model_breaks_on_has_a_reason(folders: dict[str, str]) -> None:
    generator = load(folders["llama"])
    whole = written(generator, asked(PROMPTS), SAMPLED)
    (broken,) = tokens_of(generator, "🙂")[:1]
    model: Any = generator._rows.model
    with torch.no_grad():
        model.get_input_embeddings().weight[broken] = math.nan
    found = written(generator, asked([*PROMPTS, "🙂"]), SAMPLED)
    assert found.pop() == Generation(str(len(PROMPTS)), "", "error", 0, "non_finite")
    usual = [each for each in found if each.reason is None]
    assert len(usual) >= 3 and all(each in whole for each in usual)


def test_no_end_before_the_least_number_of_tokens(folders: dict[str, str]) -> None:
    generator = load(folders["llama"])
    (free,) = written(generator, asked(PROMPTS[:1]), Decoding(10))
    assert (free.finish, free.num_tokens) == ("length", 10)
    generator._ends = sorted(set(tokens_of(generator, free.text).tolist()))
    (ended,) = written(generator, asked(PROMPTS[:1]), Decoding(10))
    assert ended == Generation("0", "", "stop", 0)
    (late,) = written(generator, asked(PROMPTS[:1]), Decoding(10, min_new_tokens=4))
    assert late.num_tokens is not None and late.num_tokens >= 4
    (sampled,) = written(generator, asked(PROMPTS[:1]), replace(SAMPLED, min_new_tokens=9))
    assert sampled.num_tokens is not None and sampled.num_tokens >= 9


@pytest.mark.parametrize("stop", [r"\w", r"[^\x00-\x7f]", r"(?s).{7}", r"\n|e"])
def test_a_text_ends_with_the_first_match(stop: str, llama: LocalGenerator) -> None:
    free = written(llama, asked(PROMPTS), SAMPLED)
    found = written(llama, asked(PROMPTS), replace(SAMPLED, stop=stop))
    for each, whole in zip(found, free, strict=True):
        match = re.search(stop, whole.text)
        if match is None:
            assert each == whole
        else:
            assert (each.text, each.finish) == (whole.text[: match.end()], "stop")
    assert any(each.text != whole.text for each, whole in zip(found, free, strict=True))


def test_texts_are_given_as_they_end(llama: LocalGenerator) -> None:
    decoding = replace(SAMPLED, max_new_tokens=40, stop=r"\w{3}")
    found = list(llama.generate(asked(PROMPTS), decoding))
    sizes = [each.num_tokens or 0 for each in found]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_a_text_is_looked_through_once_however_long_it_becomes() -> None:
    decoded = 0

    def decode(tokens: Sequence[int]) -> str:
        nonlocal decoded
        decoded += len(tokens)
        return bytes(tokens).decode(errors="replace")

    text = ("早い者勝ち。 Ещё раз " * 60 + "The answer is 12.").encode()
    watch = StopText(re.compile(r"answer is \d+\."), decode)
    ends = [watch.ended(list(text[: n + 1])) for n in range(len(text))]
    assert ends[:-1] == [None] * (len(text) - 1)
    assert ends[-1] == text.decode()
    assert decoded < 20 * len(text)


@pytest.mark.parametrize(
    ("prompt", "thought"),
    [("", "<think>\nThe answer is 7.\n"), ("<think>\n", "The answer is 7.\n")],
)
def test_what_is_said_in_a_thought_is_no_end(prompt: str, thought: str) -> None:
    watch = StopText(re.compile(r"answer is \d+\.\n"), lambda ids: "".join(map(chr, ids)), prompt)
    text = f"{thought}</think>The answer is 8.\n"
    tokens = [ord(letter) for letter in text]
    found = [watch.ended(tokens[: end + 1]) for end in range(len(tokens))]
    assert found == [None] * (len(tokens) - 1) + [text]


def test_control_tokens_of_reasoning_stay_in_texts(folders: dict[str, str]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders["llama"])
    ids = tokenizer("The tide")["input_ids"]
    assert decode_of(tokenizer)([*ids, tokenizer.eos_token_id]) == "The tide"
    tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]", "[INST]"]})
    opens, closes, other = tokenizer.convert_tokens_to_ids(["[THINK]", "[/THINK]", "[INST]"])
    text = decode_of(tokenizer)([opens, *ids, closes, other, *ids, tokenizer.eos_token_id])
    assert text == "[THINK]The tide[/THINK]The tide"


def test_a_thought_that_the_prompt_opens_is_marked_in_the_text(
    folders: dict[str, str], copy_of: CopyOf
) -> None:
    folder = copy_of(folders["llama"])
    entry = ModelEntry(name="tiny", location=str(folder))
    set_template(folder, "{{ messages[0]['content'] }}")
    plain = generation_identity(entry, Settings(device="cpu"))
    set_template(folder, "{{ messages[0]['content'] }}<think>\n")
    thinking = generation_identity(entry, Settings(device="cpu"))
    assert "<think>" in thinking.definition
    assert "<think>" not in plain.definition
    (found,) = written(load(folder), asked(["The tide"]), Decoding(4, min_new_tokens=4))
    assert found.text.startswith("<think>")
    assert answering_part(found.text) == ""


def test_the_context_ends_a_text_and_refuses_a_prompt(llama: LocalGenerator) -> None:
    context = 64
    prompts = ["a" * 60, "a" * 64, "a" * 300, "x", ""]
    lengths = [len(tokens_of(llama, each)) for each in prompts[:3]]
    assert lengths[0] < context <= lengths[1] < lengths[2]
    found = written(llama, asked(prompts), Decoding(100, min_new_tokens=1))
    assert (found[0].finish, found[0].num_tokens) == ("length", context - lengths[0])
    assert [(each.finish, each.reason) for each in found[1:3]] == [("error", "too_long")] * 2
    assert found[3].num_tokens == context - len(tokens_of(llama, "x"))
    assert found[4].num_tokens == context - 1  # after the start token alone


def test_a_prompt_without_tokens_has_a_reason(startless_folder: str) -> None:
    found = written(load(startless_folder), asked(["", "x"]), Decoding(3))
    assert (found[0].finish, found[0].reason) == ("error", "empty")
    assert found[1].num_tokens == 3


class NarrowRows(Rows):
    """Rows on a device that runs out of memory after some rows have grown."""

    left = 12
    room = 3

    def read(self, tokens: torch.Tensor) -> None:
        self.left -= 1
        if self.left == 0 and len(tokens) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        super().read(tokens)


class Narrow(RowModel):
    room = 4

    def start(self, prompts: Sequence[Tokens], room: int) -> Rows:
        if len(prompts) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return NarrowRows(self, prompts, room)


class FullWhenKeeping(Rows):
    """Rows on a device that runs out of memory the second time that rows leave."""

    num_kept = 0

    def keep(self, places: Sequence[int]) -> None:
        FullWhenKeeping.num_kept += 1
        if FullWhenKeeping.num_kept == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        super().keep(places)


class FullLater(RowModel):
    def start(self, prompts: Sequence[Tokens], room: int) -> Rows:
        return FullWhenKeeping(self, prompts, room)


def test_a_text_that_ended_as_the_device_was_full_is_there(folders: dict[str, str]) -> None:
    generator = load(folders["llama"])
    requests, decoding = asked(PROMPTS * 3), replace(SAMPLED, stop="[aeiou] ")
    whole = written(generator, requests, decoding)
    generator._rows = FullLater(generator._rows.model)
    assert written(generator, requests, decoding) == whole
    assert FullWhenKeeping.num_kept > 2


def test_a_batch_that_does_not_fit_is_halved(folders: dict[str, str]) -> None:
    generator = load(folders["llama"])
    requests, decoding = asked(PROMPTS * 3), replace(SAMPLED, stop="[aeiou] ")
    whole = written(generator, requests, decoding)
    generator._rows = Narrow(generator._rows.model)
    before = generator.budget
    assert written(generator, requests, decoding) == whole
    assert generator.budget < before
    generator._rows.room = 0
    with pytest.raises(NotMeasurable, match="do not fit into the device's memory"):
        written(generator, asked(PROMPTS), SAMPLED)


def test_a_chat_model_is_asked_in_its_template(folders: dict[str, str], copy_of: CopyOf) -> None:
    folder = copy_of(folders["llama"])
    plain = load(folder)
    set_template(folder, "{{ bos_token }}<{{ messages[0].content }}>")
    chat = load(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("<The tide>", add_special_tokens=False)["input_ids"]
    [request] = asked(["The tide"])
    ready = prepare(chat._identity, chat._text_model, request, SAMPLED)
    assert isinstance(ready, Prompted)
    assert ready.tokens.tolist() == [tokenizer.bos_token_id, *ids]
    assert chat.generation_id(SAMPLED) != plain.generation_id(SAMPLED)


def test_a_template_that_takes_no_question_is_left_alone(
    folders: dict[str, str], copy_of: CopyOf, caplog: pytest.LogCaptureFixture
) -> None:
    folder = copy_of(folders["llama"])
    plain = load(folder)
    whole = written(plain, asked(PROMPTS), SAMPLED)
    set_template(folder, "{{ raise_exception('no user turns') }}")
    assert written(load(folder), asked(PROMPTS), SAMPLED) == whole
    assert "without its chat template" in caplog.text and "no user turns" in caplog.text


def test_texts_have_an_identity_before_weights_are_read(
    folders: dict[str, str], settings: Settings, llama: LocalGenerator, copy_of: CopyOf
) -> None:
    entry = ModelEntry(name="tiny", location=folders["llama"])
    identity = generation_identity(entry, settings)
    assert (identity.name, identity.revision) == (llama.name, llama.revision)
    assert identity.name == "tiny"
    assert identity.generation_id(SAMPLED) == llama.generation_id(SAMPLED)
    assert identity.generation_id(Decoding(20)) != identity.generation_id(SAMPLED)
    half = settings.model_copy(update={"dtype": "bfloat16"})
    assert generation_identity(entry, half).generation_id(SAMPLED) != identity.generation_id(
        SAMPLED
    )
    folder = copy_of(folders["llama"])
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 7]}')
    other = generation_identity(ModelEntry(name="tiny", location=str(folder)), settings)
    assert (identity.ends, other.ends) == ((1,), (1, 7))
    assert other.revision == identity.revision
    assert other.generation_id(SAMPLED) != identity.generation_id(SAMPLED)


def test_a_model_that_does_not_write_is_refused(settings: Settings) -> None:
    entry, says = ModelEntry("m", "control", "x"), "writes no text; name a language model"
    with pytest.raises(NotMeasurable, match=says):
        backends.load_generator(entry, settings, Budget())
    with pytest.raises(NotMeasurable, match=says):
        backends.identify_texts(entry, settings)


def test_a_cache_is_enlarged_as_often_as_it_must(
    llama: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = written(llama, asked(PROMPTS), SAMPLED)
    enlarged = []

    def count(states: torch.Tensor, length: int) -> torch.Tensor:
        enlarged.append(length)
        return growing_cache_enlarged(states, length)

    growing_cache_enlarged = growing_cache._enlarged
    monkeypatch.setattr(growing_cache, "_enlarged", count)
    written(llama, asked(PROMPTS), SAMPLED)
    once = len(enlarged)
    monkeypatch.setattr(growing_cache, "_LEAST_ROOM", 3)
    monkeypatch.setattr(growing_cache, "_ROOM_SHARE", 1000)
    assert written(llama, asked(PROMPTS), SAMPLED) == expected
    assert len(enlarged) - once > 3 * once > 0
