"""The kinds of models of the kernel: one description each.

A function is named ``module:function``, because the import of its module may take seconds. It is
imported when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Backend:
    """The abilities of a kind of model.

    Attributes:
        on_device: True if the model runs on the device and in the dtype of the settings.
        from_hub: True if the files of its models are on the hub.
        is_listed: True if catalogue files may contain entries of this kind.
        is_control: True for compressors, whose loss depends on the text alone.
        is_server: True if a server computes.
        is_paid: True if requests cost money.
        codes: True if the codec can compress texts with the model's probabilities.
        answers_together: number of requests sent to a server at once; 0 without a server.
        suffix: ending of the files of its models, such as ``.pth``, by which they are recognised.
        fields: optional fields of ``ModelEntry`` that this backend uses.
        needs: those of ``fields`` that an entry must set.
        cannot: error message for each missing ability (``score``, ``answer``, ``write``).
        identify: function that returns the Identity of an entry without loading weights.
        load: function that returns the scorer of an entry, or None if models have no losses.
        load_answerer: function that returns the answerer of an entry, or None if the models cannot
            answer. A paid backend's function takes the budget of the run as third argument.
        load_generator: function that returns a text generator, or None if models write no texts.
        identify_texts: function that returns the facts that determine the generated texts.
    """

    kind: str
    on_device: bool = False
    from_hub: bool = False
    is_listed: bool = True
    is_control: bool = False
    is_server: bool = False
    is_paid: bool = False
    codes: bool = False
    answers_together: int = 0
    suffix: str = ""
    fields: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    cannot: Mapping[str, str] = field(default_factory=dict)
    identify: str | None = None
    load: str | None = None
    load_answerer: str | None = None
    load_generator: str | None = None
    identify_texts: str | None = None

    @property
    def answers(self) -> bool:
        """True if models of this kind can answer forecasting questions."""
        return self.load_answerer is not None


LOCAL_ANSWERER = "models.options.answering:load_answerer"

API = Backend(
    kind="api",
    is_server=True,
    is_paid=True,
    fields=(
        "served_name",
        "api_key",
        "max_output_tokens",
        "dollars_per_million_input_tokens",
        "dollars_per_million_output_tokens",
    ),
    needs=("served_name",),
    cannot={
        "score": "an API writes answers and gives no likelihoods of text: it can be asked "
        "forecasting questions (`tidemark forecast`) and cannot be scored; for a server that "
        "returns the likelihoods of a prompt (vLLM, SGLang), use kind "
        "remote (extra `remote_scoring`)"
    },
    load_answerer="models.api:load_api_answerer",
    load_generator="models.api:load_api_generator",
)
CAUSAL_LM = Backend(
    kind="causal_lm",
    on_device=True,
    from_hub=True,
    codes=True,
    fields=("trust",),
    identify="models.scoring.token_scorer:identify_causal_lm",
    load="models.scoring.token_scorer:load_causal_lm",
    load_answerer="models.written:load_writing_answerer",
    load_generator="models.generation.local:load_generator",
    identify_texts="models.generation.local:generation_identity",
)
CONTROL = Backend(
    kind="control",
    is_listed=False,
    is_control=True,
    cannot={
        "answer": "a compressor has no answers; name a language model",
        "write": "a compressor writes no text; name a language model",
    },
    identify="models.compressors:load_compressor",
    load="models.compressors:load_compressor",
)
FAKE = Backend(
    kind="fake", is_listed=False, identify="models.fake:load_fake", load="models.fake:load_fake"
)
# Causal language models that tidemark trained up to a known month.
REFERENCE = Backend(
    kind="reference",
    on_device=True,
    from_hub=True,
    codes=True,
    identify=CAUSAL_LM.identify,
    load=CAUSAL_LM.load,
    load_answerer=CAUSAL_LM.load_answerer,
    load_generator=CAUSAL_LM.load_generator,
    identify_texts=CAUSAL_LM.identify_texts,
)

BACKENDS = (API, CAUSAL_LM, CONTROL, FAKE, REFERENCE)
