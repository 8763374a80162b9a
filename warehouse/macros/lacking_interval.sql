-- Why a gap has no interval over time; NULL if it has one.
-- Parameters: num_before and num_after, the months on each side of the split, both above 0.
-- Source: docs/metrics.md (Intervals).
create or replace macro lacking_interval(num_before, num_after) as
    coalesce(
        lacking_number(
            least(num_before, num_after), 'month', ' on a side of the cutoff', 'months of a side'
        ),
        lacking_number(
            num_before // 3 + num_after // 3, 'block', ' of three months', 'blocks of a gap'
        )
    );
