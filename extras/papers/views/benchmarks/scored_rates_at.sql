-- Each model's rate from a date on beside its benchmark scores.
-- Grain: one row per model, source, protocol, benchmark.
-- Parameter: split_on, the first day of the months that count, for all models (Li et al.:
--   2023-01-01); NULL: the months after each model's own cutoff.
-- Units: bits per byte (mean of the monthly figures from the split on); compression_rate_after is a
--   fraction. Ranks are among the models with both figures: 1 is the lowest rate, and the highest
--   score.
-- Source: Li et al. 2024, arXiv 2402.00861, Table 4; docs/metrics.md (Time).
create or replace macro papers.scored_rates_at(split_on) as table
    with rates as (
        select
            model,
            source,
            protocol,
            count(bits_per_byte) as num_months_after,
            avg(bits_per_byte) as bits_per_byte_after
        from internal.split_cells_at(split_on)
        where is_after
        group by model, source, protocol
    )

    select
        r.model,
        r.source,
        r.protocol,
        s.benchmark,
        s.score,
        r.bits_per_byte_after,
        r.bits_per_byte_after / 8 as compression_rate_after,
        rank() over (cohort order by s.score desc) as score_rank,
        rank() over (cohort order by r.bits_per_byte_after) as rank,
        r.num_months_after
    from rates as r
    inner join internal.benchmark_scores as s on r.model = s.model
    where r.bits_per_byte_after is not null
    window cohort as (partition by r.source, r.protocol, s.benchmark);
