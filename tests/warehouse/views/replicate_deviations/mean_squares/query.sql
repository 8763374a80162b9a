-- Rescaled to the standard error; months of a single cluster, or with all bytes in one, have none.
-- Replicates are sums of 1/65536 nats: those of equal documents are rounded.
select
    month,
    count(*) as num_rows,
    round(sqrt(avg(deviation * deviation)), 6) as root_mean_square,
    round(avg(weight_deviation * weight_deviation), 9) as weight_mean_square
from internal.replicate_deviations
group by month;
