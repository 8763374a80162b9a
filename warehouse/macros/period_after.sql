-- First day of the next period of a source.
-- Parameters: source, NULL for months; first_day, that of a period of the source.
-- Source: docs/adr/0041-periods.md.
create or replace macro period_after(source, first_day) as
    cast(
        case
            when source_period(source) = 'week' then first_day + interval 7 day
            when source_period(source) = 'half-month' and day(first_day) = 1
                then first_day + interval 15 day
            else date_trunc('month', first_day) + interval 1 month
        end as date
    );
