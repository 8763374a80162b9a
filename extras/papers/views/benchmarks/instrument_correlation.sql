-- Correlation of compression of the next months with forecasting and with generalisation.
-- Grain: one row per instrument, source, protocol, ood_split, rules, size_class. An instrument
--   without answers has one row for each size class, with NULL for its other keys.
-- Compression is the mean over sources of the mean over the months after every compared model's
--   cutoff, else its month of release (num_months), on the documents that all of them have
--   (compared_cells). Models that state neither have none. instrument: forecasting
--   (forecast_accuracy.accuracy less what guessing gives) or generalisation
--   (scylla_scores.score of all anchors).
-- Units: correlations over models of bits per byte with the other figure: negative means that
--   better compression goes with the other. Intervals of 95 % are Fisher's; models count as
--   independent. NULL where reason says why.
-- Source: docs/metrics.md (Time); Fisher 1921.
create or replace view papers.instrument_correlation as
with known as (
    select
        model,
        size_class(parameters) as class_of_size,
        coalesce(cutoff, date_trunc('month', released)) as last_seen
    from main.models
),

cells as materialized (
    select
        c.*,
        k.class_of_size,
        max(k.last_seen) over () as newest
    from main.compared_cells as c
    inner join known as k on c.model = k.model
    where k.last_seen is not null and not starts_with(c.model, 'control:')
),

means as (
    select
        model,
        class_of_size,
        source,
        avg(bits_per_byte) as bits_per_byte,
        list(distinct month) as months
    from cells
    where month > newest
    group by model, class_of_size, source
),

compression as materialized (
    select
        model,
        unnest(['all', class_of_size]) as size_class,
        avg(bits_per_byte) as bits_per_byte,
        len(list_distinct(flatten(list(months)))) as num_months
    from means
    group by model, class_of_size
),

figures as materialized (
    select
        'forecasting' as instrument,
        source,
        protocol,
        null as ood_split,
        null as rules,
        model,
        accuracy - expected_accuracy as value
    from main.forecast_accuracy
    union all
    select
        'generalisation' as instrument,
        null as source,
        protocol,
        ood_split,
        rules,
        model,
        score as value
    from main.scylla_scores
    where level is null
),

keys as (
    select distinct
        instrument,
        source,
        protocol,
        ood_split,
        rules
    from figures
    union all
    select
        instrument,
        null as source,
        null as protocol,
        null as ood_split,
        null as rules
    from (select unnest(['forecasting', 'generalisation']) as instrument) as all_of_them
    where instrument not in (select f.instrument from figures as f)
),

classes as (
    select 'all' as size_class
    union
    select class_of_size as size_class
    from known
    where class_of_size is not null
),

joined as (
    select
        k.instrument,
        k.source,
        k.protocol,
        k.ood_split,
        k.rules,
        s.size_class,
        c.model,
        c.bits_per_byte,
        c.num_months,
        f.value
    from keys as k
    cross join classes as s
    left join compression as c on s.size_class = c.size_class
    left join figures as f
        on
            k.instrument = f.instrument
            and k.source is not distinct from f.source
            and k.protocol is not distinct from f.protocol
            and k.ood_split is not distinct from f.ood_split
            and k.rules is not distinct from f.rules
            and c.model = f.model
),

ranked as (
    select
        *,
        rank() over (cohort order by bits_per_byte)
        + (count(*) over (cohort_by_bits) - 1) / 2 as bits_rank,
        rank() over (cohort order by value) + (count(*) over (cohort_by_value) - 1) / 2
            as value_rank
    from joined
    window
        cohort as (
            partition by instrument, source, protocol, ood_split, rules, size_class, value is null
        ),
        cohort_by_bits as (
            partition by
                instrument, source, protocol, ood_split, rules, size_class, value is null,
                bits_per_byte
        ),
        cohort_by_value as (
            partition by
                instrument, source, protocol, ood_split, rules, size_class, value is null, value
        )
),

correlated as (
    select
        instrument,
        source,
        protocol,
        ood_split,
        rules,
        size_class,
        count(value) as num_models,
        max(num_months) as num_months,
        case
            when protocol is null then 'no model has answers of this instrument'
            when count(model) = 0 then 'no month after the cutoff of every compared model'
            when count(value) < minimum('models of a correlation')
                then
                    too_few(
                        count(value), 'model', ' with both figures', 'models of a correlation'
                    )
            when
                min(bits_per_byte) filter (where value is not null)
                = max(bits_per_byte) filter (where value is not null)
                or min(value) = max(value)
                then 'all models have the same figure'
        end as reason,
        case when reason is null then corr(bits_per_byte, value) end as pearson,
        case when reason is null then corr(bits_rank, value_rank) filter (where value is not null)
        end as spearman
    from ranked
    group by instrument, source, protocol, ood_split, rules, size_class
)

select
    instrument,
    source,
    protocol,
    ood_split,
    rules,
    size_class,
    pearson,
    correlation_end(pearson, num_models, -1.959963984540054e0) as pearson_low,
    correlation_end(pearson, num_models, 1.959963984540054e0) as pearson_high,
    spearman,
    correlation_end(spearman, num_models, -2.0179e0) as spearman_low,
    correlation_end(spearman, num_models, 2.0179e0) as spearman_high,
    num_models,
    num_months,
    reason
from correlated;
