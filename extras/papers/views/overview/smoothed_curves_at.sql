-- Monthly curves of models with their centred moving means, for pictures.
-- Grain: one row per model, source, protocol, month, figure; no row without a figure.
-- Parameter: num_months, the length of the window: odd, and centred on the month. At the ends of a
--   curve, and beside missing months, the window has fewer months (num_months_averaged).
-- figure: bits_per_byte, bits_per_char, accuracy or adjusted_score (as forecast_accuracy_monthly).
-- No other view reads smoothed figures: neighbouring ones share months, so that they have no
--   interval. Zhu et al. state no window for their smoothed Figures 2 to 4.
-- Source: Zhu et al. 2024, Figures 2 to 4; docs/metrics.md (Time).
create or replace macro papers.smoothed_curves_at(num_months) as table
    with wide as (
        select
            model,
            source,
            protocol,
            month,
            bits_per_byte,
            bits_per_char
        from internal.monthly_loss_details
        union all by name
        select
            model,
            source,
            protocol,
            month,
            accuracy,
            adjusted_score
        from main.forecast_accuracy_monthly
    ),

    curves as (
        unpivot wide
        on bits_per_byte, bits_per_char, accuracy, adjusted_score
        into name figure value value
    )

    select
        c.*,
        avg(near.value) as smoothed,
        count(*) as num_months_averaged
    from curves as c
    inner join curves as near
        on
            c.figure = near.figure
            and c.model = near.model
            and c.source = near.source
            and c.protocol = near.protocol
            and abs(date_diff('month', c.month, near.month)) <= num_months // 2
    group by all;
