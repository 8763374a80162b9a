-- Where a model's losses jump: the last month before the jump, as an estimate of its cutoff.
-- Grain: one row per model, protocol.
-- The curve: bits per byte minus that of control:zstd on the same source and month, each source
--   less its own mean, averaged over sources of text. Where the control lacks a month of the
--   model's, the curve is not adjusted at all and column control is NULL.
-- The fit: two constants by least squares, at least three months each; only a rise counts.
-- The test: F = (n - 2) * (variance explained by the jump) / (variance left), largest over all
--   splits. NULL below 12.5: on normal noise without a jump the largest F of a rise exceeds that in
--   1 % of 24 to 240 months' curves and in at most 2 % of shorter ones (simulated: tests).
-- Units: bits per byte; months. estimated_cutoff_low and _high: 95 % of 200 bootstrap replicates,
--   NULL where a cell is of a single cluster.
-- Source: metrics.md, section 5. Reads replicate_monthly_loss, models.
create or replace view estimated_cutoff as
with figures as (
    select
        r.model,
        r.protocol,
        r.source,
        r.month,
        r.replicate,
        r.bits_per_byte,
        c.bits_per_byte as control_bits_per_byte
    from replicate_monthly_loss as r
    left join replicate_monthly_loss as c
        on
            c.model = 'control:zstd'
            and r.protocol = c.protocol
            and r.source = c.source
            and r.month = c.month
            and r.replicate = c.replicate
    where r.is_text
),

adjustable as (
    select
        model,
        protocol,
        bool_and(control_bits_per_byte is not null) filter (where replicate = 0) as is_adjusted,
        count(*) filter (where replicate = 0) = count(*) filter (where replicate = 1)
            as has_replicates
    from figures
    group by model, protocol
),

levels as (
    select
        f.model,
        f.protocol,
        f.source,
        f.month,
        f.replicate,
        f.bits_per_byte - case when a.is_adjusted then f.control_bits_per_byte else 0 end as level
    from figures as f
    inner join adjustable as a on f.model = a.model and f.protocol = a.protocol
    where f.bits_per_byte is not null and (a.has_replicates or f.replicate = 0)
),

centred as (
    select
        *,
        level - avg(level) over (
            partition by model, protocol, replicate, source
        ) as height
    from levels
),

curves as (
    select
        model,
        protocol,
        replicate,
        month,
        avg(height) as height
    from centred
    group by model, protocol, replicate, month
),

running as (
    select
        model,
        protocol,
        replicate,
        month,
        row_number() over through as num_before,
        sum(height) over through as sum_before,
        count(*) over whole as num_months,
        sum(height) over whole as sum_all,
        var_pop(height) over whole * count(*) over whole as squares_all
    from curves
    window
        whole as (partition by model, protocol, replicate),
        through as (
            partition by model, protocol, replicate
            order by month
            rows between unbounded preceding and current row
        )
),

splits as (
    select
        *,
        (sum_all - sum_before) / (num_months - num_before) - sum_before / num_before as jump
    from running
    where num_before >= 3 and num_months - num_before >= 3
),

scored as (
    select
        *,
        jump * jump * num_before * (num_months - num_before) / num_months as squares_of_jump
    from splits
    where jump > 0
),

best as (
    select
        model,
        protocol,
        replicate,
        any_value(num_months) as num_months,
        any_value(squares_all) as squares_all,
        max(squares_of_jump) as squares_of_jump,
        arg_max(jump, squares_of_jump) as jump,
        arg_max(month, squares_of_jump) as last_month_before
    from scored
    group by model, protocol, replicate
),

tested as (
    select
        *,
        (num_months - 2) * squares_of_jump
        / greatest(squares_all - squares_of_jump, 1e-12 * squares_all) as f_statistic
    from best
    where replicate = 0
),

intervals as (
    select
        model,
        protocol,
        quantile_disc(last_month_before, 0.025) as low,
        quantile_disc(last_month_before, 0.975) as high
    from best
    where replicate > 0
    group by model, protocol
),

lengths as (
    select
        model,
        protocol,
        count(*) as num_months
    from curves
    where replicate = 0
    group by model, protocol
),

found as (
    select
        l.model,
        l.protocol,
        case when a.is_adjusted then 'control:zstd' end as control,
        l.num_months,
        case when t.f_statistic >= 12.5 then t.last_month_before end as estimated_cutoff,
        case when t.f_statistic >= 12.5 then i.low end as estimated_cutoff_low,
        case when t.f_statistic >= 12.5 then i.high end as estimated_cutoff_high,
        case when t.f_statistic >= 12.5 then t.jump end as jump_bits_per_byte,
        t.f_statistic,
        m.cutoff as catalogue_cutoff
    from lengths as l
    inner join adjustable as a on l.model = a.model and l.protocol = a.protocol
    left join tested as t on l.model = t.model and l.protocol = t.protocol
    left join intervals as i on l.model = i.model and l.protocol = i.protocol
    left join models as m on l.model = m.model
)

select
    *,
    date_diff('month', catalogue_cutoff, estimated_cutoff) as difference_months
from found;
