-- All dated figures, each with the month's reference model.
-- A month's common documents are those that most models with a known cutoff have measured (equal
-- fingerprints). The reference is, of the month's models on the common documents, the one with most
-- months on common documents.
create or replace temporary table panel_cells as
with cells as (
    select
        f.model,
        f.source,
        f.protocol,
        f.month,
        f.is_text,
        f.bits_per_byte,
        f.standard_error,
        f.num_documents,
        m.cutoff,
        m.role,
        coalesce(c.fingerprint, 0) as documents
    from internal.monthly_loss_details as f
    left join internal.sound_cells as c
        on
            f.model = c.model
            and f.source = c.source
            and f.protocol = c.protocol
            and f.month = c.month
    left join main.models as m on f.model = m.model
    where f.bits_per_byte is not null
),

votes as (
    select
        source,
        protocol,
        month,
        documents,
        row_number() over (
            partition by source, protocol, month
            order by
                count(cutoff) desc, count(*) desc, any_value(num_documents) desc, documents asc
        ) = 1 as is_common
    from cells
    group by source, protocol, month, documents
),

judged as (
    select
        c.*,
        v.is_common,
        count(*) filter (where v.is_common and c.cutoff is not null) over (
            partition by c.source, c.protocol, c.model
        ) as num_common
    from cells as c
    inner join votes as v
        on
            c.source = v.source
            and c.protocol = v.protocol
            and c.month = v.month
            and c.documents = v.documents
)

select
    model,
    source,
    protocol,
    month,
    is_text,
    cutoff,
    role,
    standard_error,
    num_documents,
    is_common,
    bits_per_byte,
    first_value(documents) over by_common as common_documents,
    first_value(model) over by_common as reference,
    first_value(bits_per_byte) over by_common as reference_bits_per_byte,
    first_value(num_documents) over by_common as num_common_documents
from judged
window
    by_common as (
        partition by source, protocol, month
        order by is_common desc, num_common desc, model asc
    );
