-- Every column of corpus_loss. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol.
create or replace view internal.corpus_loss_details as
with corpora as (
    select *
    from internal.sound_cells
    where month is null
),

num_models as (
    select
        protocol,
        count(distinct model) as num_models
    from corpora
    group by protocol
),

common as (
    select
        c.protocol,
        c.source
    from corpora as c
    inner join num_models as n on c.protocol = n.protocol
    where c.num_chars > 0
    group by c.protocol, c.source
    having count(*) = any_value(n.num_models)
),

averages as (
    select
        c.model,
        c.protocol,
        avg(c.nll_nats / (ln(2) * c.num_chars)) as bits_per_char,
        count(*) as num_corpora
    from corpora as c
    semi join common on c.protocol = common.protocol and c.source = common.source
    group by c.model, c.protocol
)

select
    c.model,
    c.source,
    c.protocol,
    c.num_documents,
    c.num_chunks,
    c.num_unmeasured,
    c.nll_nats,
    c.num_tokens,
    c.num_chars,
    c.num_bytes,
    c.nll_nats / (ln(2) * nullif(c.num_bytes, 0)) as bits_per_byte,
    c.nll_nats / (ln(2) * nullif(c.num_chars, 0)) as bits_per_char,
    c.nll_nats / (ln(2) * nullif(c.num_tokens, 0)) as bits_per_token,
    c.nll_nats / nullif(c.num_chars, 0) as nats_per_char,
    c.nll_nats / (8 * ln(2) * nullif(c.num_bytes, 0)) as compression_rate,
    case
        when c.standard_error is not null
            then
                greatest(
                    0,
                    c.nll_nats / (ln(2) * c.num_bytes)
                    - t_975(c.degrees_of_freedom) * c.standard_error
                )
    end as bits_per_byte_low_documents,
    c.nll_nats / (ln(2) * nullif(c.num_bytes, 0)) + t_975(c.degrees_of_freedom) * c.standard_error
        as bits_per_byte_high_documents,
    c.standard_error,
    c.degrees_of_freedom,
    c.num_clusters,
    a.bits_per_char as average_bits_per_char,
    coalesce(a.num_corpora, 0) as num_corpora_averaged,
    cell_reason(c.is_finite, c.num_bytes, c.num_documents, c.standard_error) as reason
from corpora as c
left join averages as a on c.model = a.model and c.protocol = a.protocol;
