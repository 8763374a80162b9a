-- One figure per model, as in headline, over the months of a window.
-- Grain: one row per compared model with a cell in the window.
-- Parameters: first_month and last_month, dates of their first days, both inclusive; NULL: without
--   a limit. months: 'new' compares only months after the latest cutoff of the ranked models; 'all'
--   compares text seen in training, too. The models and cells are chosen within the window.
-- Units and intervals: as in headline. Over time, a window needs four blocks of three months.
-- next_*, resolution, saved_share: as in internal.headline_intervals_at, which has both intervals.
-- reason: of the interval shown; next_reason: of that of next_difference, which is over time.
create or replace macro headline_at(first_month, last_month, months := 'new') as table
    with figures as (
        select
            *,
            bool_or(bits_per_byte_low is not null) over () as is_over_time
        from internal.headline_intervals_at(first_month, last_month, months)
    ),

    shown as (
        select
            model,
            bits_per_byte,
            rank,
            reason,
            next_reason,
            basis,
            num_sources,
            num_months,
            resolution,
            next_model,
            next_difference,
            next_difference_low,
            next_difference_high,
            next_p_value_adjusted,
            saved_share,
            case when is_over_time then saved_share_low else saved_share_low_documents end
                as saved_share_low,
            case when is_over_time then saved_share_high else saved_share_high_documents end
                as saved_share_high,
            case when is_over_time then bits_per_byte_low else bits_per_byte_low_documents end
                as bits_per_byte_low,
            case when is_over_time then bits_per_byte_high else bits_per_byte_high_documents end
                as bits_per_byte_high,
            case when is_over_time then rank_low else rank_low_documents end as rank_low,
            case when is_over_time then rank_high else rank_high_documents end as rank_high,
            case when is_over_time then 'months' else 'documents' end as interval_basis
        from figures
    )

    select
        model,
        bits_per_byte,
        bits_per_byte_low,
        bits_per_byte_high,
        rank,
        rank_low,
        rank_high,
        case
            when rank_low = rank_high then cast(rank as varchar)
            else rank_low || '–' || rank_high
        end as rank_set,
        basis,
        num_sources,
        num_months,
        interval_basis,
        resolution,
        next_model,
        next_difference,
        next_difference_low,
        next_difference_high,
        next_p_value_adjusted,
        saved_share,
        saved_share_low,
        saved_share_high,
        case
            when bits_per_byte_low is null and interval_basis = 'documents'
                then lacking_documents(bits_per_byte_low)
            when bits_per_byte_low is null then reason
            when rank is null then unranked_reason(false, model, basis)
            when saved_share is null then 'no share saved: control:zstd is not compared'
            when saved_share_low is null
                then 'no interval of the share saved: control:zstd has no interval'
        end as reason,
        next_reason
    from shown;
