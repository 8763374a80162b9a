-- The documents of a month that cost a model most, with links to them.
-- Grain: one row per model, source, protocol, month, position; at most 10 documents of a month.
--   Documents of less than 200 measured bytes are left out, and undated text.
-- Units: bits_per_byte is a ratio of sums over the measured chunks of the document; num_bytes is
--   the UTF-8 text of these chunks. url and title are those of the source; NULL if it has none.
-- Source: docs/metrics.md (Losses by class of byte).
create or replace view worst_documents as
with sums as (
    select
        model,
        source,
        protocol,
        month,
        document_id,
        sum(nll_nats) as nll_nats,
        sum(num_bytes) as num_bytes
    from chunk_losses
    where month is not null and nll_nats is not null
    group by model, source, protocol, month, document_id
    having sum(num_bytes) >= 200
),

ranked as (
    select
        *,
        row_number() over (
            partition by model, source, protocol, month
            order by nll_nats / num_bytes desc, document_id asc
        ) as position
    from sums
)

select
    r.model,
    r.source,
    r.protocol,
    r.month,
    r.position,
    r.nll_nats / (ln(2) * r.num_bytes) as bits_per_byte,
    cast(r.num_bytes as bigint) as num_bytes,
    r.document_id,
    d.title,
    d.url
from ranked as r
left join documents as d
    on
        r.source = d.source
        and r.month = d.month
        and r.document_id = d.document_id
where r.position <= 10;
