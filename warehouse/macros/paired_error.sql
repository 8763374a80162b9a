-- Standard error of the difference of two figures, from paired bootstrap replicates.
-- Parameters: xs and ys, lists of the replicates' deviations from the figure, in the order of
--   replicates (replicate_deviations). NULL if a list is missing.
-- Root mean square about the figure, so that the bootstrap's bias widens an interval.
create or replace macro paired_error(xs, ys) as
    case
        when len(xs) = len(ys) then list_distance(xs, ys) / sqrt(len(xs))
    end;
