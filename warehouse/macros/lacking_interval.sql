-- Why a gap has no interval over time; NULL if it has one.
-- Parameters: num_before and num_after, the months on each side of the split, both above 0.
-- Source: docs/metrics.md (Intervals).
create or replace macro lacking_interval(num_before, num_after) as
    case
        when least(num_before, num_after) < 3
            then 'no interval: fewer than three months on a side of the cutoff'
        when num_before // 3 + num_after // 3 < 4
            then 'no interval: fewer than four blocks of three months'
    end;
