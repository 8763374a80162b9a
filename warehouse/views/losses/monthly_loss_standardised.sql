-- Monthly figures at a fixed mix of kinds, beside the raw ones: a month with more of a hard kind is
--   not a harder month.
-- Grain: one row per model, source, protocol, month. Undated text and published rates are left out.
-- standardised_bits_per_byte: sum of weight * bits per byte over the kinds of the month, over the
--   sum of their weights. The weights are those of source_mix. weight_covered is the latter sum: 1
--   if no kind is missing. The figure is NULL below 0.9, without landed documents, and without a
--   raw figure; reason says why.
-- *_low and *_high bound a 95 % interval over documents; NULL where the raw figure has none. The
--   error of a kind with one cluster in the month is its distance from the raw figure.
-- Units: bits per byte; weight_covered is a share.
-- Source: docs/metrics.md (Standardised to a fixed mix).
create or replace view monthly_loss_standardised as
with raw as (
    select
        model,
        source,
        protocol,
        month,
        is_text,
        bits_per_byte,
        standard_error
    from internal.period_loss
    where not is_published
),

kinds as (
    select
        model,
        source,
        protocol,
        month,
        kind,
        num_documents,
        nll_nats / (ln(2) * nullif(num_bytes, 0)) as kind_bits_per_byte,
        standard_error as kind_error,
        coalesce(degrees_of_freedom, 1) as kind_degrees_of_freedom
    from internal.cell_kinds
    where month is not null
),

weighted as (
    select
        r.*,
        k.num_documents,
        k.kind_bits_per_byte,
        k.kind_degrees_of_freedom,
        m.weight,
        pow(m.weight * coalesce(k.kind_error, k.kind_bits_per_byte - r.bits_per_byte), 2)
            as kind_variance
    from raw as r
    left join kinds as k
        on
            r.model = k.model
            and r.source = k.source
            and r.protocol = k.protocol
            and r.month = k.month
    left join internal.source_mix as m on k.source = m.source and k.kind = m.kind
),

figures as (
    select
        model,
        source,
        protocol,
        month,
        any_value(is_text) as is_text,
        any_value(bits_per_byte) as bits_per_byte,
        any_value(standard_error) is not null as has_error,
        count(weight) as num_kinds,
        cast(sum(num_documents) as bigint) as num_documents,
        fsum(weight) as weight_covered,
        fsum(weight * kind_bits_per_byte) / fsum(weight) as figure,
        sqrt(fsum(kind_variance)) / fsum(weight) as error,
        greatest(
            1,
            coalesce(
                pow(fsum(kind_variance), 2)
                / nullif(fsum(pow(kind_variance, 2) / kind_degrees_of_freedom), 0),
                1
            )
        ) as degrees_of_freedom
    from weighted
    group by model, source, protocol, month
),

judged as (
    select
        *,
        case
            when bits_per_byte is null then 'no figure of the month'
            when num_kinds = 0 then 'the documents have not landed'
            when weight_covered < 0.9 then 'kinds with more than a tenth of the weight are missing'
        end as reason
    from figures
)

select
    j.model,
    j.source,
    j.protocol,
    j.month,
    case when j.reason is null then j.figure end as standardised_bits_per_byte,
    case
        when j.reason is null and j.has_error
            then greatest(0, j.figure - t_975(j.degrees_of_freedom) * j.error)
    end as standardised_bits_per_byte_low,
    case
        when j.reason is null and j.has_error
            then j.figure + t_975(j.degrees_of_freedom) * j.error
    end as standardised_bits_per_byte_high,
    j.bits_per_byte,
    j.weight_covered,
    j.num_kinds,
    j.num_documents,
    s.regime,
    j.is_text,
    case
        when j.reason is null and not j.has_error
            then cell_reason(true, 1, j.num_documents, null)
        else j.reason
    end as reason
from judged as j
left join source_months as s on j.source = s.source and j.month = s.month;
