-- Fill shared_figures with the cells of panel_cells on other documents: the reference's figure plus
-- the difference to it on the documents that both measured, by as many bytes. Such a cell counts if
-- these are at least half of the reference's documents.
insert into internal.shared_figures
with others as (
    from panel_cells
    where not is_common
),

sides as (
    select
        model,
        source,
        protocol,
        month,
        model as owner,
        1 as sign
    from others
    union all
    select
        model,
        source,
        protocol,
        month,
        reference as owner,
        -1 as sign
    from others
),

documents as (
    select
        s.model,
        s.source,
        s.protocol,
        s.month,
        s.sign,
        l.document_id,
        sum_exactly(l.nll_nats) / ln(2) as bits,
        sum(l.num_bytes) as num_bytes
    from main.chunk_losses as l
    inner join sides as s
        on
            l.model = s.owner
            and l.source = s.source
            and l.protocol = s.protocol
            and l.month = s.month
    where l.nll_nats is not null
    group by s.model, s.source, s.protocol, s.month, s.sign, l.document_id
),

shared as (
    select
        model,
        source,
        protocol,
        month,
        document_id,
        sum(sign * bits) as difference_bits,
        any_value(num_bytes) as num_bytes
    from documents
    group by model, source, protocol, month, document_id
    having count(*) = 2 and min(num_bytes) = max(num_bytes)
),

differences as (
    select
        model,
        source,
        protocol,
        month,
        count(*) as num_documents,
        sum(difference_bits order by document_id) / sum(num_bytes) as difference
    from shared
    group by model, source, protocol, month
    having sum(num_bytes) > 0
)

select
    c.model,
    c.source,
    c.protocol,
    c.month,
    c.reference_bits_per_byte + d.difference as bits_per_byte,
    d.num_documents,
    c.common_documents as fingerprint
from panel_cells as c
inner join differences as d
    on
        c.model = d.model
        and c.source = d.source
        and c.protocol = d.protocol
        and c.month = d.month
where 2 * d.num_documents >= c.num_common_documents;
