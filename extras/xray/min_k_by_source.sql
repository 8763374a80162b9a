-- Min-K % of the texts of a source under each model, against that of texts which no model has seen.
-- Grain: one row per model, revision, source, protocol.
-- Input: min_k_scores (model, revision, source, protocol, document_id, min_k), a row per text.
-- Parameter: against, the source of texts to compare with; NULL if there is none.
-- Units: min_k is the mean over texts of the mean ln p of a text's least likely tokens, in nats;
--   near 0 is likely. difference: min_k less that of `against`. difference_less_mean: less the mean
--   over the models that have one; above 0, the model knows the source better than others do.
-- The 95 % intervals are Student's over texts. That of a difference has the degrees of freedom of
--   the side with fewer texts: rather too wide than too narrow. NULL below two texts.
-- Source: Shi et al. 2024, arXiv 2310.16789, for Min-K %; Huang et al. 2024, arXiv 2404.09937, for
--   its use on texts of benchmarks.
with by_source as (
    select
        model,
        revision,
        source,
        protocol,
        count(*) as num_texts,
        avg(min_k) as min_k,
        var_samp(min_k) / count(*) as variance
    from min_k_scores
    where min_k is not null
    group by model, revision, source, protocol
),

compared as (
    select
        b.*,
        b.min_k - a.min_k as difference,
        case
            when least(b.num_texts, a.num_texts) > 1
                then t_975(least(b.num_texts, a.num_texts) - 1) * sqrt(b.variance + a.variance)
        end as difference_error,
        case when b.num_texts > 1 then t_975(b.num_texts - 1) * sqrt(b.variance) end as error
    from by_source as b
    left join by_source as a
        on
            b.model = a.model
            and b.revision = a.revision
            and b.protocol = a.protocol
            and a.source = $against
    where b.source is distinct from $against
)

select
    model,
    revision,
    source,
    protocol,
    num_texts,
    min_k,
    min_k - error as min_k_low,
    min_k + error as min_k_high,
    difference,
    difference - difference_error as difference_low,
    difference + difference_error as difference_high,
    difference - avg(difference) over (partition by source, protocol) as difference_less_mean
from compared
order by source asc, protocol asc, difference_less_mean desc nulls last, min_k desc, model asc;
