-- Bits per byte of every version of every monitored page, divided by the page's mean.
-- Grain: one row per model, source, protocol, cluster_id, month. For effective_cutoff.
-- Pages: recurring clusters of text documents (documents.cluster_id in three months or more). A
--   page counts only if the model has measured it in nine tenths of the source's months with pages;
--   otherwise the set of pages would change the mean.
-- Units: relative_loss is a fraction of the page's mean over its versions.
-- Source: Cheng et al. 2024, "Dated Data", arXiv 2403.12958.
create or replace view internal.version_losses as
with pages as materialized (
    select
        source,
        cluster_id
    from main.documents
    where month is not null and cluster_id is not null and num_chars > 0
    group by source, cluster_id
    having count(distinct month) >= 3
),

versions as materialized (
    select
        d.source,
        d.month,
        d.document_id,
        d.cluster_id
    from main.documents as d
    semi join pages as p on d.source = p.source and d.cluster_id = p.cluster_id
    where d.month is not null
),

losses as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month,
        v.cluster_id,
        sum(l.nll_nats) / (ln(2) * sum(l.num_bytes)) as bits_per_byte
    from main.chunk_losses as l
    inner join versions as v
        on l.source = v.source and l.month = v.month and l.document_id = v.document_id
    where l.nll_nats is not null and l.num_bytes > 0
    group by l.model, l.source, l.protocol, l.month, v.cluster_id
),

counted as (
    select
        *,
        count(*) over page as num_versions,
        avg(bits_per_byte) over page as mean_bits_per_byte
    from losses
    window page as (partition by model, source, protocol, cluster_id)
),

months as (
    select
        model,
        source,
        protocol,
        count(distinct month) as num_months
    from losses
    group by model, source, protocol
)

select
    c.model,
    c.source,
    c.protocol,
    c.cluster_id,
    c.month,
    c.bits_per_byte / c.mean_bits_per_byte as relative_loss
from counted as c
inner join months as m
    on c.model = m.model and c.source = m.source and c.protocol = m.protocol
where
    m.num_months >= 3
    and c.num_versions >= 0.9e0 * m.num_months
    and c.mean_bits_per_byte > 0;
