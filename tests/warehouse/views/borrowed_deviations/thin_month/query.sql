-- Two clusters have twice the variance of their mean: sqrt(2 * (3 * 0.01 + 0.04) / 4).
select
    source,
    month,
    count(*) as num_replicates,
    round(sqrt(avg(deviation * deviation)), 9) as error,
    round(sqrt(avg(weight_deviation * weight_deviation)), 9) as weight
from internal.borrowed_deviations
group by source, month;
