-- Bits per character of undated corpora, and their mean, with bootstrap deviations.
-- Grain: one row per model, source, protocol; source NULL is the mean over the corpora that all
--   models of the protocol have measured. For other views to read.
-- Units: bits per character. deviations: bootstrap replicates less the figure, in the order of
--   replicates, as in replicate_deviations. The corpus's ratio of bytes to characters is taken as
--   fixed. degrees_of_freedom: Satterthwaite's. The latter three are NULL with a single cluster.
-- fingerprint: equal if models measured the same documents; NULL in means.
-- Source: Huang et al. 2024, arXiv 2404.09937; docs/metrics.md (Likelihood, Intervals).
create or replace view internal.corpus_figures as
with cells as (
    select
        c.model,
        c.source,
        c.protocol,
        c.num_documents,
        c.fingerprint,
        c.nll_nats / (ln(2) * c.num_bytes) as bits_per_byte,
        c.num_bytes / c.num_chars as bytes_per_char,
        c.num_bytes,
        c.standard_error * c.num_bytes / c.num_chars as standard_error,
        least(3 * c.degrees_of_freedom, c.num_clusters - 1) as degrees_of_freedom
    from internal.sound_cells as c
    where c.month is null and c.num_chars > 0
),

deviations as (
    select
        r.model,
        r.source,
        r.protocol,
        r.replicate,
        coalesce(r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) - c.bits_per_byte, 0)
        * c.bytes_per_char as deviation,
        c.standard_error
    from internal.cell_replicates as r
    inner join cells as c
        on r.model = c.model and r.source = c.source and r.protocol = c.protocol
    where r.month is null and c.standard_error is not null
),

-- Rescaled to the standard error, as in replicate_deviations.
vectors as (
    select
        model,
        source,
        protocol,
        list(deviation order by replicate) as raw,
        any_value(standard_error) / nullif(sqrt(avg(deviation * deviation)), 0) as scale
    from deviations
    group by model, source, protocol
),

figures as materialized (
    select
        c.model,
        c.source,
        c.protocol,
        c.num_documents,
        c.fingerprint,
        c.bits_per_byte * c.bytes_per_char as bits_per_char,
        c.standard_error,
        case when c.standard_error is not null then c.degrees_of_freedom end as degrees_of_freedom,
        list_transform(v.raw, lambda x: coalesce(x * v.scale, 0)) as deviations
    from cells as c
    left join vectors as v
        on c.model = v.model and c.source = v.source and c.protocol = v.protocol
),

num_models as (
    select
        protocol,
        count(distinct model) as num_models
    from figures
    group by protocol
),

common as (
    select
        f.protocol,
        f.source
    from figures as f
    inner join num_models as n on f.protocol = n.protocol
    group by f.protocol, f.source
    having count(*) = any_value(n.num_models)
),

shared as (
    select f.*
    from figures as f
    semi join common on f.protocol = common.protocol and f.source = common.source
),

places as (
    select
        model,
        protocol,
        unnest(deviations) as deviation,
        generate_subscripts(deviations, 1) as place
    from shared
),

mean_deviations as (
    select
        model,
        protocol,
        place,
        avg(deviation) as deviation
    from places
    group by model, protocol, place
),

mean_vectors as (
    select
        model,
        protocol,
        list(deviation order by place) as deviations
    from mean_deviations
    group by model, protocol
),

means as (
    select
        s.model,
        s.protocol,
        count(*) as num_corpora,
        cast(sum(s.num_documents) as bigint) as num_documents,
        avg(s.bits_per_char) as bits_per_char,
        count(s.standard_error) = count(*) as has_interval,
        coalesce(
            power(sum(power(s.standard_error, 2)), 2)
            / nullif(sum(power(s.standard_error, 4) / s.degrees_of_freedom), 0),
            min(s.degrees_of_freedom)
        ) as degrees_of_freedom
    from shared as s
    group by s.model, s.protocol
)

select
    model,
    source,
    protocol,
    1 as num_corpora,
    num_documents,
    fingerprint,
    bits_per_char,
    standard_error,
    degrees_of_freedom,
    deviations
from figures
union all
select
    m.model,
    null as source,
    m.protocol,
    m.num_corpora,
    m.num_documents,
    null as fingerprint,
    m.bits_per_char,
    case
        when m.has_interval
            then sqrt(list_aggregate(list_transform(v.deviations, lambda x: x * x), 'avg'))
    end as standard_error,
    case when m.has_interval then m.degrees_of_freedom end as degrees_of_freedom,
    case when m.has_interval then v.deviations end as deviations
from means as m
left join mean_vectors as v on m.model = v.model and m.protocol = v.protocol;
