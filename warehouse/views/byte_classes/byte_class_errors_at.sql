-- Half widths of the 95 % intervals by class of byte, for other months. For byte_class_gap_at.
-- Grain: one row per model, scope, protocol, byte_class whose sides have enough months.
-- Parameter: split_on, as in byte_class_months_at.
-- A figure is linear in the months near its value. A month's effect on it differs from the mean of
--   its side by a shock. All shocks have one variance, and a correlation of memory^(months between
--   them). Student's t has one degree of freedom per block of three months of a side, less two.
-- Units: as byte_class_gap_at; total_half is of the sum of the parts.
-- Source: docs/metrics.md (Losses by class of byte, Intervals); ADR 0016.
create or replace macro internal.byte_class_errors_at(split_on) as table
    with months as (
        select
            m.model,
            m.scope,
            m.protocol,
            m.byte_class,
            m.month_number,
            m.is_after,
            s.num_before,
            s.num_after,
            s.part,
            s.total,
            (
                m.bits_of_text
                - case when m.is_after then s.level_after else s.level_before end * m.share_of_bytes
            )
            / case when m.is_after then s.share_after else s.share_before end as level_effect,
            m.share_of_bytes
            - case when m.is_after then s.share_after else s.share_before end as share_effect,
            m.bits_of_text
            - case when m.is_after then s.bits_after else s.bits_before end as bits_effect,
            (s.share_before + s.share_after) / 2 as share,
            case when m.is_after then 1 else -1 end
            * (s.level_after - s.level_before)
            / 2 as half_change
        from internal.byte_class_months_at(split_on) as m
        inner join internal.byte_class_sides_at(split_on) as s
            on
                m.model = s.model
                and m.scope is not distinct from s.scope
                and m.protocol = s.protocol
                and m.byte_class = s.byte_class
        where lacking_interval(s.num_before, s.num_after) is null
    ),

    part_effects as (
        select
            *,
            case
                when byte_class = 'no_text' then bits_effect
                else share * level_effect + half_change * share_effect
            end as part_effect
        from months
    ),

    effects as (
        select
            *,
            sum(part_effect) over (partition by model, scope, protocol, month_number)
                as total_effect
        from part_effects
    ),

    curves as (
        select
            e.model,
            e.scope,
            e.protocol,
            e.byte_class,
            e.month_number,
            e.is_after,
            e.num_before,
            e.num_after,
            f.figure,
            case f.figure
                when 'level' then e.level_effect
                when 'part' then e.part_effect
                when 'total' then e.total_effect
                else
                    e.part_effect / nullif(e.total, 0)
                    - e.part / nullif(e.total * e.total, 0) * e.total_effect
            end as residual
        from effects as e
        cross join (values ('level'), ('part'), ('total'), ('share')) as f (figure)
    ),

    neighbours as (
        select
            *,
            case
                when month_number - lag(month_number) over side = 1
                    then residual * lag(residual) over side
            end as product
        from curves
        window
            side as (
                partition by model, scope, protocol, byte_class, figure, is_after
                order by month_number
            )
    ),

    memories as (
        select
            model,
            scope,
            protocol,
            byte_class,
            figure,
            num_before,
            num_after,
            sum(residual * residual) as squares,
            month_memory(
                avg(product) / nullif(avg(residual * residual), 0), 2, num_before + num_after
            ) as memory
        from neighbours
        group by model, scope, protocol, byte_class, figure, num_before, num_after
    ),

    -- Variances of the means of the sides, in squared shocks.
    means as (
        select
            *,
            mean_variance(memory, num_before) as before,
            mean_variance(memory, num_after) as after,
            t_975(num_before // 3 + num_after // 3 - 2) as quantile
        from memories
    ),

    shocks as (
        select
            *,
            quantile
            * sqrt(squares / (num_before * (1 - before) + num_after * (1 - after)))
                as shock
        from means
    )

    select
        model,
        scope,
        protocol,
        byte_class,
        max(shock * sqrt(before)) filter (where figure = 'level') as before_half,
        max(shock * sqrt(after)) filter (where figure = 'level') as after_half,
        max(shock * sqrt(before + after)) filter (where figure = 'level') as gap_half,
        max(shock * sqrt(before + after)) filter (where figure = 'part') as part_half,
        max(shock * sqrt(before + after)) filter (where figure = 'total') as total_half,
        max(shock * sqrt(before + after)) filter (where figure = 'share') as share_half
    from shocks
    group by model, scope, protocol, byte_class;
