-- Losses by thirds of perplexity under a reference model, as the head, middle and tail of CCNet.
-- Grain: one row per model, month, third.
-- Parameters: $1 source, $2 reference model, $3 protocol; of months alone.
-- Units: perplexity_low and perplexity_high are the least and greatest perplexity a token of the
--   third's documents under the reference model. bits_per_byte is a ratio of sums over the model's
--   measured chunks of these documents.
-- A third has a third of the month's documents; the head is the easiest to predict.
-- Source: Wenzek et al. 2020 (arXiv 1911.00359), section 3.3.
with judged as (
    select
        month,
        document_id,
        exp(sum(nll_nats) / sum(num_tokens)) as perplexity
    from chunk_losses
    where
        source = $1 and model = $2 and protocol = $3
        and month is not null and nll_nats is not null
    group by month, document_id
    having sum(num_tokens) > 0
),

placed as (
    select
        month,
        document_id,
        perplexity,
        ntile(3) over (partition by month order by perplexity asc, document_id asc) as third
    from judged
),

measured as (
    select
        model,
        month,
        document_id,
        sum(nll_nats) as nll_nats,
        sum(num_bytes) as num_bytes
    from chunk_losses
    where source = $1 and protocol = $3 and nll_nats is not null
    group by model, month, document_id
)

select
    m.model,
    p.month,
    ['head', 'middle', 'tail'][p.third] as third,
    count(*) as num_documents,
    min(p.perplexity) as perplexity_low,
    max(p.perplexity) as perplexity_high,
    sum(m.nll_nats) / (ln(2) * nullif(sum(m.num_bytes), 0)) as bits_per_byte
from placed as p
inner join measured as m
    on
        p.month = m.month
        and p.document_id = m.document_id
group by m.model, p.month, p.third
order by p.month, m.model, p.third;
