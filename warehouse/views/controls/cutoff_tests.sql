-- The best change in each model's curve, with its test. For estimated_cutoff and second_cutoff.
-- Grain: one row per model, protocol, source; source NULL: of the mean over sources of text.
-- is_compressor marks the rows of compressors, also among published rates.
-- q_value: Benjamini-Hochberg's over the models and sources of a protocol; the means over sources
--   are a family of their own. is_found: q_value is at most 0.05. reason says why it is not,
--   which end of the interval is open, or that the curve is not one ramp.
-- is_told: is_found, and both ends of the interval are inside the window. cutoff_text: the month or
--   months if is_told, 'at or after …' or 'at or before …' if one end is open, else NULL.
-- has_two_rises: is_found, and second_q_value is at most 0.05: that of a single rise, among the
--   models and sources that have a change. Only then are the months of the two rises reported.
-- doubt: the part of the reason that also applies to two rises: the source may have caused them, or
--   a source is left out.
-- detectable_change: the smallest step that is found in 80 % of simulated data sets with the
--   curve's noise, months and controls, over the months that can be dated; other tests of the
--   family stay. reason states this size, and that of a rise over eight months.
-- Source: docs/metrics.md (Cutoffs); Benjamini and Hochberg 1995.
create or replace view internal.cutoff_tests as
with ranked as (
    select
        *,
        count(p_value) over (partition by protocol, source is null) as num_tests,
        count(second_p_value) over (partition by protocol, source is null) as num_second,
        row_number() over (
            partition by protocol, source is null
            order by p_value nulls last, model, source
        ) as position,
        row_number() over (
            partition by protocol, source is null
            order by second_p_value nulls last, model, source
        ) as second_position
    from internal.cutoff_estimates
),

tested as (
    select
        * exclude (num_tests, position, num_second, second_position),
        false_discovery_rate(p_value, num_tests, position, row(protocol, source is null))
            as q_value,
        false_discovery_rate(
            second_p_value, num_second, second_position, row(protocol, source is null)
        ) as second_q_value,
        coalesce(q_value <= 0.05 and second_q_value <= 0.05, false) as has_two_rises
    from ranked
),

families as (
    select
        protocol,
        source is null as is_mean,
        greatest(count(p_value), 1) as num_tests,
        count(*) filter (where q_value <= 0.05) as num_found
    from tested
    group by protocol, source is null
),

sized as (
    select
        t.*,
        0.05 * least(f.num_tests, 1 + f.num_found) / f.num_tests as p_needed
    from tested as t
    inner join families as f on t.protocol = f.protocol and (t.source is null) = f.is_mean
),

worded as (
    select
        * exclude (reason, note, step_error, ramp_error, p_needed),
        0.84 + sqrt(5.0 * (num_free + 2) / num_free * (-0.4 - ln(p_needed))) as num_errors,
        step_error * num_errors as detectable_change,
        case when regexp_matches(note, 'source''s|alone') then note end as doubt,
        case
            when reason is not null then reason
            when q_value > 0.05 and first_datable > last_datable
                then
                    'no change found; no month can be dated: three months before it are needed, '
                    || 'and three after it'
            when q_value > 0.05
                then
                    'no change found from ' || strftime(first_datable, '%Y-%m')
                    || ' to ' || strftime(last_datable, '%Y-%m')
                    || coalesce(
                        '; a step of ' || printf('%.3f', detectable_change) || ' bits per byte'
                        || coalesce(
                            ', or a rise over eight months of '
                            || printf('%.3f', ramp_error * num_errors) || ',',
                            ''
                        )
                        || ' would be found in 80 %',
                        ''
                    )
                    || '; earlier cutoffs cannot be told, later ones not yet'
            when cutoff_low is null and cutoff_high is null then 'month not told'
            when cutoff_high is null then 'at or after ' || strftime(cutoff_low, '%Y-%m')
            when cutoff_low is null then 'at or before ' || strftime(cutoff_high, '%Y-%m')
        end as main_reason,
        case
            when has_two_rises
                then
                    concat_ws(
                        '; ',
                        'a second rise after ' || strftime(second_rise, '%Y-%m')
                        || ', the first after ' || strftime(first_rise, '%Y-%m'),
                        doubt
                    )
            when q_value <= 0.05 then note
        end as further_reason
    from sized
)

select
    t.* exclude (main_reason, further_reason, num_errors),
    coalesce(t.q_value <= 0.05, false) as is_found,
    is_found and t.cutoff_low is not null and t.cutoff_high is not null as is_told,
    case
        when is_told
            then
                concat_ws(
                    ' to ',
                    strftime(t.cutoff_low, '%Y-%m'),
                    case
                        when t.cutoff_high > t.cutoff_low then strftime(t.cutoff_high, '%Y-%m')
                    end
                )
        when is_found and t.cutoff_low is not null
            then 'at or after ' || strftime(t.cutoff_low, '%Y-%m')
        when is_found and t.cutoff_high is not null
            then 'at or before ' || strftime(t.cutoff_high, '%Y-%m')
    end as cutoff_text,
    nullif(concat_ws('; ', t.main_reason, t.further_reason), '') as reason,
    m.cutoff as catalogue_cutoff
from worded as t
left join main.models as m on t.model = m.model
union all by name
select
    model,
    source,
    protocol,
    false as is_found,
    false as is_told,
    false as has_two_rises,
    'a compressor has no cutoff' as reason
from internal.monthly_loss_details
where is_compressor(model)
group by grouping sets ((model, source, protocol), (model, protocol));
