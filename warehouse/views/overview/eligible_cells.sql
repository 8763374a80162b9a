-- The cells by which models may be compared: text under the default protocol, soundly measured.
-- Grain: one row per model, source, month. For other views to read.
-- Left out: undated corpora; images and audio; cells without a figure in monthly_loss (no measured
--   chunk, or a loss that is not finite); suspect_cells; models with a lossy tokenizer.
-- A cell on other documents than most models has its figure and fingerprint of shared_figures.
-- is_new: the month's text is new to the model (training_ends): True for a compressor, NULL if
--   nothing is known.
-- Units: bits per byte; num_unmeasured: chunks.
-- Source: docs/metrics.md (Headline, New text).
create or replace view internal.eligible_cells as
with lossy_models as (
    select
        model,
        revision
    from main.tokenizer_comparison
    where is_lossy
)

select
    loss.model,
    loss.source,
    loss.month,
    loss.num_unmeasured,
    coalesce(shared.bits_per_byte, loss.bits_per_byte) as bits_per_byte,
    coalesce(shared.fingerprint, landed.fingerprint) as fingerprint,
    ends.known_by = 'compressor' or loss.month > ends.last_month as is_new
from internal.monthly_loss_details as loss
inner join internal.landed_cells as landed
    on
        loss.model = landed.model
        and loss.source = landed.source
        and loss.month = landed.month
        and loss.protocol = landed.protocol
left join internal.shared_figures as shared
    on
        loss.model = shared.model
        and loss.source = shared.source
        and loss.month = shared.month
        and loss.protocol = shared.protocol
left join main.training_ends as ends on loss.model = ends.model
anti join lossy_models as lossy
    on landed.model = lossy.model and landed.revision = lossy.revision
anti join internal.suspect_cells as suspect
    on
        loss.model = suspect.model
        and loss.source = suspect.source
        and loss.month = suspect.month
        and loss.protocol = suspect.protocol
where loss.protocol = 'default' and loss.is_text;
