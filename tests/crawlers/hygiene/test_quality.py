import numpy as np
import pytest

from crawlers.hygiene.quality import low_quality
from crawlers.hygiene.tokens import ngrams, tokens_of
from tests.crawlers.conftest import prose

# As the LaTeX reader gives it: a paragraph a line, maths as source between dollars.
MATHS = r"""
Let $X_1, \dots, X_n$ be i.i.d. with $\mathbb{E}[X_i] = 0$ and $\mathbb{E}[X_i^2] = \sigma^2$. Then

$\frac{1}{\sqrt{n}} \sum_{i=1}^{n} X_i \xrightarrow{d} \mathcal{N}(0, \sigma^2),$

so that for $\epsilon > 0$ and $0 < \delta < 1/2$ we have

$\Pr\left[ \frac{1}{n} \left| \sum_{i=1}^{n} X_i \right| > \epsilon \right] \le 2 e^{-n \epsilon}.$

We set $w_{t+1} = w_t - \eta_t \nabla f(w_t)$, with $\eta_t = \eta_0 / \sqrt{t + 1}$, and bound

$f(\bar{w}_T) - f(w^*) \le \frac{\lVert w_1 - w^* \rVert_2^2 + \eta_0^2 G^2 \log T}{\sqrt{T}}.$

Here $Q, K \in \mathbb{R}^{n \times d_k}$ and $A = \mathrm{softmax}(Q K^\top / \sqrt{d_k}) V$.
"""


def _judge(text: str) -> str | None:
    tokens = tokens_of(text, is_code=False)
    return low_quality(text, tokens, ngrams(tokens.hashes, 5))


def test_prose_is_good_enough() -> None:
    assert _judge(prose(1, 500)) is None
    assert _judge("Über Größe: „Straße“ – naïve façade, coöperation, élève; Łódź, Žižkov.") is None
    assert _judge("नमस्ते दुनिया, यह एक वाक्य है जिसमें मात्राएँ हैं। " * 2) is None
    assert (
        _judge(
            "市議会は火曜日の夜に開かれ、古い橋を修理することを決めた。\n多くの住民がこれを歓迎した。"
        )
        is None
    )


def test_papers_full_of_maths_are_prose() -> None:
    """Less than half of their characters may be letters."""
    assert _judge(MATHS) is None
    assert _judge(MATHS + f"We get ${'1 + 2 = 3, 4 = 2^2, ' * 30}$ in the end.") is None


@pytest.mark.parametrize(
    "text",
    [
        " ".join(map(str, range(1000, 1200))), "| 12.5 | 13.7 | 99 |\n" * 20, "=" * 200,
        "Prices: $5, $6, $7, $8 " + "$1.50, 2.75, 3.25; " * 30,
    ],
)  # fmt: skip
def test_numbers_and_signs_are_no_prose(text: str) -> None:
    assert "are letters" in str(_judge(text))


def test_words_over_and_over_are_no_prose() -> None:
    assert "repeats" in str(_judge("Buy it now in our shop, cheap and good. " * 20))
    once, again = prose("a", 140), prose("b", 60)
    assert _judge(f"{once} {again} {again}") is None  # 60 of 260 words
    assert "repeats" in str(_judge(f"{once} {again} {again} {again}"))  # 120 of 320


def test_repetition_in_a_few_words_says_nothing() -> None:
    assert _judge("So it goes on and on, and so it goes on and on, and so it goes on.") is None


def test_lines_are_neither_endless_nor_fragments() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, row)) for row in rng.integers(97, 123, size=(20_000, 6))]
    assert "a line of 139999" in str(_judge(" ".join(words)))
    assert _judge("\n".join(words)) is None
    assert "characters a line" in str(_judge("\n".join(word[:2] for word in words)))
    assert _judge("床前明月光，\n疑是地上霜。\n举头望明月，\n低头思故乡。") is None
