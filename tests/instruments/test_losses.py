import datetime as dt
import itertools
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from core.cells.losses import Cell
from core.cells.record import CellRecord, read_cell_record
from core.corpus.partition import Partition, Seal
from core.corpus.selection import require_sealed, select_sealed
from core.errors import ModelLoadError, NotMeasurable, StorageError, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from core.storage import store as storage
from core.storage.store import Store
from instruments import losses as losses_module
from instruments.losses import ScoringPlan, load_model, plan_scoring, write_losses
from instruments.models import ModelHolder, scorer_of
from models import canary as canary_module
from models.backends import identify
from models.catalogue import ModelEntry, find_model
from models.scoring import machine as meter
from models.scoring.forward import Forward
from models.scoring.protocols import get_protocol
from models.scoring.scorer import DeviceFull, Losses, Tokens
from models.weights.hub import find_cached
from tests.conftest import Hub
from tests.seals import Sealer, seal_images

JANUARY, FEBRUARY = Month("2024-01"), Month("2024-02")


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses_module, "held", ModelHolder())


@pytest.fixture
def canary(tmp_path: Path) -> str:
    folder = tmp_path / "small"
    shutil.copytree(canary_module._FOLDER, folder)
    return str(folder)


@pytest.fixture
def corpus(seal: Sealer) -> None:
    for source, month in (("a", "2024-01"), ("a", "2024-02"), ("b", "2024-02"), ("c", None)):
        seal(source, month)


def plan(settings: Settings, model: str = "control:zstd", protocol: str = "default") -> ScoringPlan:
    return plan_scoring(model, [protocol], None, None, settings)


def names(seals: list[Seal]) -> list[str]:
    return [str(seal.partition) for seal in seals]


@pytest.mark.usefixtures("corpus")
def test_partitions_are_selected_by_source_and_month_or_refused(store: Store) -> None:
    assert names(select_sealed(store, None, None)) == [
        "a 2024-01", "a 2024-02", "b 2024-02", "c undated",
    ]  # fmt: skip
    assert names(select_sealed(store, ["b", "c"], None)) == ["b 2024-02", "c undated"]
    assert names(select_sealed(store, None, [FEBRUARY])) == ["a 2024-02", "b 2024-02"]
    assert select_sealed(store, ["b"], [JANUARY]) == []
    require_sealed(store, None, None)
    require_sealed(store, ["a", "b"], [JANUARY, FEBRUARY])
    with pytest.raises(UsageError, match=r"nothing is sealed of b for 2024-01 under .*: a\)"):
        require_sealed(store, ["a", "b"], [JANUARY])
    with pytest.raises(UsageError, match="of any source for 2023-01 to 2023-02 .*: nothing"):
        require_sealed(store, None, [Month("2023-01"), Month("2023-02")])


@pytest.mark.usefixtures("corpus")
def test_a_damaged_manifest_stops_what_needs_it_alone(settings: Settings, store: Store) -> None:
    manifest = Path(settings.home) / "corpus/source=b/month=2024-02/manifest.json"
    manifest.write_bytes(b"{")
    assert names(select_sealed(store, ["a", "c"], None)) == ["a 2024-01", "a 2024-02", "c undated"]
    assert names(select_sealed(store, None, [JANUARY])) == ["a 2024-01"]
    with pytest.raises(StorageError, match="source=b/month=2024-02"):
        select_sealed(store, None, [FEBRUARY])


@pytest.mark.usefixtures("corpus")
def test_another_protocol_and_another_text_make_other_cells(
    settings: Settings, seal: Sealer
) -> None:
    paths = {cell.path for cell in plan(settings).cells}
    assert not paths & {cell.path for cell in plan(settings, protocol="disjoint-512").cells}
    seal("b", "2024-02", words="other words, ")
    assert len(paths & {cell.path for cell in plan(settings).cells}) == 3


@pytest.mark.usefixtures("corpus")
def test_names_that_are_unknown_and_models_that_cannot(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown model"):
        plan(settings, model="nope")
    with pytest.raises(UnknownName, match="unknown protocol"):
        plan(settings, protocol="nope")
    [refused] = plan(settings, protocol="uncheatable").refusals.values()
    assert "defined on a model's tokens" in refused
    with pytest.raises(ModelLoadError, match=r"has no config\.json"):
        plan(settings, model=str(tmp_path))


@pytest.mark.usefixtures("corpus")
def test_a_partition_sealed_anew_is_scored_in_the_version_that_was_planned(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    the_plan = plan(settings)
    [old] = [cell for cell in the_plan.pending if cell.partition.source == "b"]
    [planned] = select_sealed(store, ["b"], None)
    seal("b", "2024-02", words="other words, ")
    [newest] = select_sealed(store, ["b"], None)
    write_losses([old], the_plan.entry, settings)
    losses = pq.read_table(store.url(old.path), partitioning=None)
    assert sum(losses["num_bytes"].to_pylist()) == planned.num_bytes != newest.num_bytes
    assert planned.digest == old.partition_digest


@pytest.mark.usefixtures("corpus")
def test_a_damaged_partition_leaves_no_losses(settings: Settings, store: Store) -> None:
    the_plan = plan(settings)
    [part] = select_sealed(store, ["b"], None)[0].parts
    store.write_bytes(part, store.read_bytes(part)[:-100])
    [cell] = [cell for cell in the_plan.pending if cell.partition.source == "b"]
    with pytest.raises(StorageError, match="is damaged"):
        write_losses([cell], the_plan.entry, settings)
    assert store.list("losses/**") == [] or not store.exists(cell.path)
    assert [path for path in Path(settings.home).rglob(".tmp-*")] == []


def test_one_model_is_held_at_a_time(settings: Settings) -> None:
    loaded = ModelHolder()
    zstd, gzip = (find_model(f"control:{name}", settings) for name in ("zstd", "gzip"))
    revision = {entry.name: identify(entry, settings).revision for entry in (zstd, gzip)}
    with loaded.hold(scorer_of, zstd, revision["control:zstd"], settings) as first:
        pass
    with loaded.hold(scorer_of, zstd, revision["control:zstd"], settings) as again:
        assert again is first
    with loaded.hold(scorer_of, gzip, revision["control:gzip"], settings) as other:
        assert other.name == "control:gzip"
    with loaded.hold(scorer_of, zstd, revision["control:zstd"], settings) as anew:
        assert anew is not first


def test_the_next_models_files_are_fetched_once_the_present_one_is_loaded(
    settings: Settings, canary: str, hub: Hub
) -> None:
    near = settings.model_copy(update={"sites": hub.sites})
    hub.site.add("someone/tiny", Path(canary))
    coming, present = (find_model(name, near) for name in ("someone/tiny", "control:zstd"))
    holder = ModelHolder()
    holder.expect(coming, near)
    assert hub.web.requests == []
    holder.get(scorer_of, present, near)
    for thread in threading.enumerate():
        if thread.daemon and thread.name.startswith("prefetch"):
            thread.join()
    assert find_cached("someone/tiny", None, False) is not None


def test_another_budget_is_not_scored_with_the_old_one(settings: Settings, canary: str) -> None:
    loaded = ModelHolder()
    entry = find_model(canary, settings)
    revision = identify(entry, settings).revision
    for budget in (64, 128):
        changed = settings.model_copy(update={"batch_tokens": budget})
        with loaded.hold(scorer_of, entry, revision, changed) as scorer:
            assert scorer.facts.batch_tokens == budget


@pytest.mark.usefixtures("corpus")
def test_nothing_is_loaded_where_nothing_is_pending(settings: Settings, tmp_path: Path) -> None:
    broken = ModelEntry(name="broken", location=str(tmp_path / "no such folder"))
    cells = plan(settings).cells
    assert cells
    load_model(ScoringPlan(broken, cells, pending=()), settings)
    with pytest.raises(ModelLoadError, match="no such folder"):
        load_model(ScoringPlan(broken, cells, pending=cells), settings)


@pytest.mark.usefixtures("corpus")
def test_a_variant_is_one_cell_whatever_it_is_called(settings: Settings, canary: str) -> None:
    names = ["default", "sliding-2048-512", "sliding", "disjoint-512", "default", "stream-2"]
    the_plan = plan_scoring(canary, names, None, None, settings)
    protocols = {cell.protocol for cell in the_plan.pending}
    assert protocols == {"default", "disjoint-512", "stream-2-1"}
    assert len(the_plan.pending) == 3 * 4
    assert [len(cells) for cells in the_plan.groups] == [3] * 4
    assert all(len({cell.partition for cell in cells}) == 1 for cells in the_plan.groups)
    [refused] = the_plan.refusals.values()  # once, though it was asked for by two names
    assert "--context 512" in refused


@pytest.mark.usefixtures("corpus")
def test_a_model_that_changed_since_the_plan_is_not_scored_under_its_old_name(
    settings: Settings, store: Store, canary: str
) -> None:
    before = plan(settings, canary)
    write_losses(before.pending[:1], before.entry, settings)
    weights = load_file(Path(canary) / "model.safetensors")
    weights["model.norm.weight"] *= 2
    save_file(weights, Path(canary) / "model.safetensors", metadata={"format": "pt"})
    after = plan(settings, canary)
    assert after.num_done == 0
    write_losses(after.pending[:1], after.entry, settings)
    old, new = (losses(store, each.pending[0]) for each in (before, after))
    assert not old["nll_nats"].equals(new["nll_nats"])
    with pytest.raises(ModelLoadError, match="changed since the cells were planned"):
        write_losses(before.pending[1:2], before.entry, settings)
    assert not store.exists(before.pending[1].path)


@pytest.mark.usefixtures("corpus")
def test_the_same_weights_under_a_second_name_are_not_scored_again(
    settings: Settings,
    store: Store,
    canary: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = plan(settings, canary)
    for cell in first.pending[:2]:
        write_losses([cell], first.entry, settings)
    again = tmp_path / "again"
    shutil.copytree(canary, again)
    second = plan(settings, str(again))
    assert second.entry.name != first.entry.name
    with monkeypatch.context() as patched:
        patched.setattr(losses_module, "_write_together", lambda *_, **__: pytest.fail("scored"))
        for cell in second.pending[:2]:
            write_losses([cell], second.entry, settings)
    [warning] = [each for each in caplog.messages if "has the same weights" in each]
    assert warning.startswith(f"{second.entry.name} has the same weights as {first.entry.name}")
    old, new = (losses(store, each.pending[0]) for each in (first, second))
    assert new["model"].unique().to_pylist() == [second.entry.name]
    assert new.drop_columns("model").equals(old.drop_columns("model"))
    copied, scored = (record(store, each.pending[0]) for each in (second, first))
    assert copied == scored.model_copy(update={"copied_from": first.entry.name})
    weights = load_file(again / "model.safetensors")
    weights["model.norm.weight"] *= 2
    save_file(weights, again / "model.safetensors", metadata={"format": "pt"})
    third = plan(settings, str(again))
    write_losses(third.pending[:1], third.entry, settings)
    assert not losses(store, third.pending[0])["nll_nats"].equals(old["nll_nats"])


def losses(store: Store, cell: Cell) -> pa.Table:
    return pq.read_table(store.open(cell.path))


def record(store: Store, cell: Cell) -> CellRecord:
    found = read_cell_record(store, cell)
    assert found is not None
    return found


NAMES = ["default", "sliding-64-16", "stream-64-16", "opencompass-swce-64-16", "whole-document"]


@pytest.mark.usefixtures("corpus")
def test_several_cells_in_one_go_are_what_each_is_alone(
    settings: Settings, store: Store, canary: str
) -> None:
    together = plan_scoring(canary, NAMES, ["a"], [JANUARY], settings)
    [cells] = together.groups
    assert [cell.protocol for cell in cells] == NAMES
    write_losses(cells, together.entry, settings)
    first = {cell: (store.read_bytes(cell.path), record(store, cell)) for cell in cells}
    for cell in cells:
        Path(store.url(cell.path)).unlink()
        write_losses([cell], together.entry, settings)
        raw, before = first[cell]
        assert store.read_bytes(cell.path) == raw  # byte for byte
        again = record(store, cell)
        clock = {"scored_at", "seconds", "peak_memory_bytes", "energy_joules"}
        assert again.model_dump(exclude=clock) == before.model_dump(exclude=clock)


@pytest.mark.usefixtures("corpus")
def test_a_record_says_what_its_cell_took(settings: Settings, store: Store, canary: str) -> None:
    the_plan = plan_scoring(canary, NAMES, ["a"], [JANUARY], settings)
    began = dt.datetime.now(dt.UTC)
    write_losses(the_plan.pending, the_plan.entry, settings)
    for cell in the_plan.pending:
        found, rows = record(store, cell), losses(store, cell)
        assert began <= found.scored_at <= dt.datetime.now(dt.UTC)
        assert found.device.startswith("cpu: ")
        assert (found.dtype, found.batch_tokens) == ("float32", 1024)
        assert found.context == (64 if "64" in cell.protocol else 512)
        assert found.versions.keys() == {"tidemark", "torch", "transformers", "tokenizers"}
        assert 0 < found.seconds < 60
        assert found.peak_memory_bytes > 2**20
        assert found.num_lossy_documents == 0
        assert found.tokenizer is not None
        assert found.tokenizer.start_token == "<|start|>"
        num_scored = sum(rows["num_tokens"].to_pylist())
        assert found.num_tokens_read >= num_scored > 200
        if cell.protocol == "whole-document":  # what is read is scored, but for what comes last
            assert found.num_tokens_read == num_scored
        if cell.protocol.startswith(("stream", "opencompass")):
            assert found.milestones == ()
        else:
            assert [each.milestone for each in found.milestones][:3] == [10, 30, 50]
            assert {each.num_documents for each in found.milestones[:2]} == {3}
            nats = [each.nll_nats for each in found.milestones]
            assert nats[0] > 0
            assert found.milestones[0].num_chars == found.milestones[0].num_bytes > 3 * 10 - 3
            sums = sum(each.nll_nats for each in found.byte_classes)
            assert sums == pytest.approx(sum(rows["nll_nats"].to_pylist()), rel=1e-9)


@pytest.mark.usefixtures("corpus")
def test_cells_that_are_scored_together_share_the_energy(
    settings: Settings, store: Store, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = itertools.count(step=10)
    monkeypatch.setattr(meter, "_processor_joules", lambda: float(next(counter)))
    the_plan = plan_scoring(canary, ["disjoint-64", "sliding-64-16"], ["a"], [JANUARY], settings)
    write_losses(the_plan.pending, the_plan.entry, settings)
    disjoint, sliding = (record(store, cell) for cell in the_plan.pending)
    assert disjoint.energy_joules is not None and sliding.energy_joules is not None
    assert disjoint.energy_joules + sliding.energy_joules == pytest.approx(10)
    ratio = disjoint.seconds / sliding.seconds
    assert disjoint.energy_joules / sliding.energy_joules == pytest.approx(ratio)


@pytest.mark.usefixtures("corpus")
def test_the_record_is_written_before_the_losses(
    settings: Settings, store: Store, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the two leaves no cell; the next run writes both."""
    the_plan = plan(settings, canary)
    cell = the_plan.pending[0]

    def killed(temporary: Path, final: Path) -> None:
        if final.suffix == ".parquet":
            raise KeyboardInterrupt
        replace(temporary, final)

    replace = storage.replace_durably
    monkeypatch.setattr(storage, "replace_durably", killed)
    with pytest.raises(KeyboardInterrupt):
        write_losses([cell], the_plan.entry, settings)
    assert store.exists(cell.record_path)
    assert not store.exists(cell.path)
    planned = plan(settings, canary)
    assert (len(planned.pending), planned.num_done) == (4, 0)
    assert list(Path(settings.home).rglob(".tmp-*")) == []
    monkeypatch.undo()
    written = record(store, cell)
    write_losses([cell], the_plan.entry, settings)
    assert record(store, cell).scored_at > written.scored_at
    planned = plan(settings, canary)
    assert (planned.num_done, len(planned.pending)) == (1, 3) and cell not in planned.pending


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Let the device hold so many inputs; return the batch sizes that were tried."""
    whole = Forward.losses

    def limit(inputs_at_once: int) -> list[int]:
        tried: list[int] = []

        def losses(
            self: Forward,
            inputs: Sequence[Tokens],
            targets: Sequence[Tokens],
            alphabet: Tokens | None = None,
        ) -> list[Losses]:
            tried.append(len(inputs) * max(map(len, inputs)))
            if tried[-1] > inputs_at_once:
                raise DeviceFull("full")
            return whole(self, inputs, targets, alphabet)

        monkeypatch.setattr(Forward, "losses", losses)
        return tried

    return limit


def test_a_full_device_starts_the_cell_again_with_half_the_budget(
    settings: Settings, store: Store, canary: str, seal: Sealer, room: Callable[[int], list[int]]
) -> None:
    seal("a", "2024-01", num=12)
    the_plan = plan_scoring(canary, ["disjoint-64", "sliding-64-16"], None, None, settings)
    tried = room(700)
    write_losses(the_plan.pending, the_plan.entry, settings)
    assert max(tried) > 700
    [budget] = {record(store, cell).batch_tokens for cell in the_plan.pending}
    assert budget is not None and 64 <= budget <= 700
    assert all(size <= budget for size in tried[-3:])
    found = [store.read_bytes(cell.path) for cell in the_plan.pending]
    small = settings.model_copy(update={"batch_tokens": budget})
    num_tried = len(tried)
    for cell in the_plan.pending:
        Path(store.url(cell.path)).unlink()
        write_losses([cell], the_plan.entry, small)
    assert max(tried[num_tried:]) <= 700
    assert [store.read_bytes(cell.path) for cell in the_plan.pending] == found


def test_one_protocol_that_does_not_fit_leaves_the_others_their_cells(
    settings: Settings, store: Store, canary: str, seal: Sealer, room: Callable[[int], list[int]]
) -> None:
    seal("a", "2024-01", words="sand and tide, " * 20)
    room(200)
    names = ["default", "disjoint-64", "disjoint-256", "stream-64-16"]
    the_plan = plan_scoring(canary, names, None, None, settings)
    default, disjoint, _, _ = the_plan.pending
    says = r"a window of 511 tokens does not fit.*--context.*; .*a window of 255 tokens does not"
    with pytest.raises(NotMeasurable, match=says):
        write_losses(the_plan.pending, the_plan.entry, settings)
    assert [store.exists(cell.path) for cell in the_plan.pending] == [False, True, False, True]
    assert not store.exists(default.record_path)
    assert record(store, disjoint).seconds > 0
    assert list(Path(settings.home).rglob(".tmp-*")) == []
    with pytest.raises(NotMeasurable, match="does not fit"):
        write_losses([default], the_plan.entry, settings)


def test_what_the_tokenizer_has_no_tokens_for_is_refused_by_the_plan(
    settings: Settings, canary: str, tmp_path: Path, seal: Sealer
) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(canary)
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((Path(canary) / name).read_bytes())
    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    bare.save_pretrained(folder)
    seal("a", "2024-01")
    names = ["chat", "default", "lm-eval", "uncheatable-bos-64", "uncheatable-64"]
    the_plan = plan_scoring(str(folder), names, None, None, settings)
    assert [cell.protocol for cell in the_plan.pending] == ["default", "uncheatable-64"]
    chat, lm_eval, uncheatable = the_plan.refusals.values()
    assert "chat template" in chat
    assert "lm-eval needs a start token" in lm_eval
    assert "uncheatable-bos-64 needs" in uncheatable
    bare.chat_template = "tide and sand " * 500
    bare.save_pretrained(folder)
    [refused] = plan_scoring(str(folder), ["chat"], None, None, settings).refusals.values()
    assert "tokens before each window's text, and a window has 512" in refused


def test_a_partition_of_images_is_scored_or_says_why_not(
    settings: Settings, store: Store, canary: str
) -> None:
    seal = seal_images(store, Partition("gallery", JANUARY), num_patches=2)
    for model in ("control:zstd", canary):
        the_plan = plan_scoring(model, ["default"], ["gallery"], None, settings)
        write_losses(the_plan.pending, the_plan.entry, settings)
        rows = losses(store, the_plan.pending[0])
        assert sum(rows["num_bytes"].to_pylist()) == seal.num_bytes == 64 * 256
        assert len(set(rows["document_id"].to_pylist())) == seal.num_documents == 2
        expected = None if model.startswith("control:") else "not_measurable"
        assert set(rows["reason"].to_pylist()) == {expected}
        found = record(store, the_plan.pending[0])
        assert found.num_lossy_documents == 0
        assert found.context == (None if model.startswith("control:") else 512)


def test_only_texts_that_spell_a_control_token_have_another_identity(
    settings: Settings, store: Store, canary: str, seal: Sealer
) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(canary)
    seal("a", "2024-01", "A mark < s >. ")
    seal("a", "2024-02", f"A page that spells {tokenizer.bos_token}. ")
    names = ["default", "lm-eval-no-bos-256"]
    cells = {
        (cell.partition.month, cell.protocol): cell.scoring
        for cell in plan_scoring(canary, names, None, None, settings).cells
    }
    identity = identify(find_model(canary, settings), settings)
    usual = {name: identity.scoring_id(get_protocol(name)) for name in names}
    for name in names:
        assert cells[JANUARY, name] == usual[name]
    assert cells[FEBRUARY, "lm-eval-no-bos-256"] == usual["lm-eval-no-bos-256"]
    assert cells[FEBRUARY, "default"] != usual["default"]
    # A second plan reads no text.
    for path in store.list("corpus/source=a/month=*/*.parquet"):
        store.delete(path)
    again = plan_scoring(canary, names, None, None, settings).cells
    assert {(c.partition.month, c.protocol): c.scoring for c in again} == cells
