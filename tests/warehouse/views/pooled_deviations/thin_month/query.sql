-- The months with an error of their own, and the one that borrows.
select
    source,
    month,
    count(*) as num_replicates,
    round(sqrt(avg(deviation * deviation)), 9) as error,
    round(sqrt(avg(weight_deviation * weight_deviation)), 9) as weight
from internal.pooled_deviations
group by source, month;
