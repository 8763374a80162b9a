-- Ranks in a month (or other period of the source) and in the one before, among the models that
--   have both.
-- Grain: one row per protocol, source, month, model; source NULL is the mean over sources. For
--   other views to read.
-- Parameter: left_out, a list of sources that do not count in the mean.
-- A model that has only one of both months would move the other models' ranks; it is left out. So
--   are months of the mean with other sources than the month before.
-- Units: bits per byte; rank 1 is the lowest; equal models share their best rank.
-- Source: Uncheatable Eval's rankings over time.
create or replace macro internal.consecutive_ranks_at(left_out) as table
    with figures as materialized (
        select
            protocol,
            source,
            model,
            month,
            bits_per_byte,
            cast([] as varchar[]) as sources
        from internal.period_loss
        where bits_per_byte is not null
        union all
        select
            protocol,
            null as source,
            model,
            month,
            avg(bits_per_byte) as bits_per_byte,
            list(source order by source) as sources
        from internal.comparable_cells_at(left_out)
        group by protocol, model, month
    )

    select
        f.protocol,
        f.source,
        f.month,
        f.model,
        f.bits_per_byte,
        b.bits_per_byte as bits_per_byte_before,
        rank() over (partition by f.protocol, f.source, f.month order by f.bits_per_byte) as rank,
        rank() over (partition by f.protocol, f.source, f.month order by b.bits_per_byte)
            as rank_before
    from figures as f
    inner join figures as b
        on
            f.protocol = b.protocol
            and f.source is not distinct from b.source
            and f.model = b.model
            and f.month = period_after(b.source, b.month)
            and f.sources = b.sources;
