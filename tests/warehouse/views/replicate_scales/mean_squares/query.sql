-- Factors make the root mean square of a month's replicates its standard error, and that of their
-- bytes 1. A replicate without bytes deviates by 0.
with replicates as (
    select
        s.*,
        coalesce(
            r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) - s.bits_per_byte, 0
        ) as deviation,
        r.num_bytes / s.num_bytes - 1 as bytes_deviation
    from internal.replicate_scales as s
    inner join internal.cell_replicates as r
        on
            s.model = r.model
            and s.source = r.source
            and s.protocol = r.protocol
            and s.month = r.month
)

select
    month,
    round(any_value(scale) * sqrt(avg(deviation * deviation)), 6) as root_mean_square,
    round(any_value(weight_scale) * sqrt(avg(pow(bytes_deviation, 2))), 9) as weight,
    any_value(num_bytes) as num_bytes
from replicates
group by month;
