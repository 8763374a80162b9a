import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from core.errors import MalformedInput, NotMeasurable
from core.settings import Settings
from extras.uncheatable.starts import choose_start, cut_text, documents_of, prepare_set, read_set
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import SENTENCES, nats

DEVELOPMENT = documents_of([{"content": text} for text in SENTENCES])


def test_the_best_start_is_chosen_on_a_development_set(gpt2_folder: str) -> None:
    model = CausalLM.load(gpt2_folder, None, Settings(device="cpu"))
    figures = choose_start(model, [DEVELOPMENT], chunk=32)
    names = {figure.protocol for figure in figures}
    # GPT-2's tokenizer has no BOS here, so that mode is left out.
    assert names == {f"uncheatable-add-{start}-32" for start in ("eos", "newline")}
    size = sum(len(text.encode()) for text in SENTENCES)
    for figure in figures:
        found = math.fsum(nats(model, DEVELOPMENT, figure.protocol)) / math.log(2) / size
        assert figure.bits_per_byte == pytest.approx(found, rel=1e-12)
    assert [figure.bits_per_byte for figure in figures] == sorted(
        figure.bits_per_byte for figure in figures
    )


def test_texts_that_begin_alike_have_their_first_token_replaced(llama_folder: str) -> None:
    model = CausalLM.load(llama_folder, None, Settings(device="cpu"))
    alike = documents_of([{"content": "The tide"}, {"content": "The sand"}])
    assert all("-replace-" in figure.protocol for figure in choose_start(model, [alike], 16))


def test_a_context_that_is_too_short_is_refused(gpt2_folder: str) -> None:
    model = CausalLM.load(gpt2_folder, None, Settings(device="cpu"))
    with pytest.raises(NotMeasurable, match="takes at most 48"):
        choose_start(model, [DEVELOPMENT])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  short ", "short"),
        ("e\u0301", "é"),
        ("", ""),
        ("a" * 50, "a" * 19),  # no boundary: 50 · 20 / 50 · 0.95
        ("one two three four five six", "one two three four"),  # 27 · 20 / 27 · 0.95 = 19
        ("one two, " + "x" * 40, "one two,"),
    ],
)
def test_a_text_is_cut_at_a_boundary(text: str, kept: str) -> None:
    assert cut_text(text, len, max_tokens=20) == kept


def test_a_cut_text_has_few_tokens_of_every_tokenizer(llama_folder: str, gpt2_folder: str) -> None:
    folders = (llama_folder, gpt2_folder)
    loaded = [PreTrainedTokenizerFast.from_pretrained(each) for each in folders]
    tokenizers = [text_model_of(each).tokenizer for each in loaded]
    long = "привет, мир! 早い者勝ち。 Ein naïver Café-Besuch kostet 3,50 €. " * 300
    records = [{"content": long, "category": "a"}] + [{"content": "b", "category": "b"}] * 501
    kept = prepare_set(records, tokenizers)
    assert [record["category"] for record in kept].count("b") == 500
    numbers = [len(each.tokenize([kept[0]["content"]])[0].ids) for each in tokenizers]
    assert 3000 < max(numbers) <= 3800


@pytest.mark.smoke
@pytest.mark.parametrize("line", ["[]", "{}", "{", '{"category": "a"}', "3"])
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_text('{"content": "a"}\n\n' + line)
    with pytest.raises(MalformedInput, match=r"dev\.jsonl, text 2"):
        read_set(tmp_path / "dev.jsonl")


def test_lm_eval_s_set_of_2026_has_lm_eval_s_figures(
    llama_folder: str, settings: Settings, tmp_path: Path
) -> None:
    """Its sets have a ``category``; each task scores the ``content`` of one category."""
    rows = [
        {"category": f"github_{kind}", "content": text * (7 if kind == "cpp" else 1)}
        for kind in ("cpp", "python")
        for text in (*SENTENCES, " ", "a\u2028b\x85")
    ]
    file = tmp_path / "test.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    texts = [row["content"] for row in read_set(file) if row["category"] == "github_cpp"]
    theirs = harness_nats(llama_folder, texts, 48)
    model = CausalLM.load(llama_folder, None, settings)
    for text, expected in zip(texts, theirs, strict=True):
        found = math.fsum(nats(model, documents_of([{"content": text}]), "lm-eval-48"))
        assert found == pytest.approx(expected, rel=1e-5)


def harness_nats(folder: str, texts: list[str], context: int) -> list[float]:
    pytest.importorskip("lm_eval", reason="lm-eval is not installed: pip install -e '.[bench]'")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    with contextlib.redirect_stderr(io.StringIO()):
        peer: Any = HFLM(
            pretrained=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            tokenizer=AutoTokenizer.from_pretrained(folder),
            max_length=context,
            batch_size=4,
            device="cpu",
            # Its cache confuses windows that read the same tokens, as in text that repeats itself.
            logits_cache=False,
        )
        requests = [
            Instance("loglikelihood_rolling", {}, (text,), row) for row, text in enumerate(texts)
        ]
        return [-found for found in peer.loglikelihood_rolling(requests, disable_tqdm=True)]
