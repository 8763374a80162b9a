-- Standard error of the difference of two figures, from the same bootstrap replicates of both.
-- Parameters: xs and ys, lists of replicates less the figure itself, in the order of replicates
--   (replicate_deviations). NULL where one has none.
-- Root mean square about the figure, so that the bootstrap's bias widens an interval.
create or replace macro paired_error(xs, ys) as
    case
        when len(xs) = len(ys) then list_distance(xs, ys) / sqrt(len(xs))
    end;
