-- Number of periods of a source from one to another, both included.
-- Parameters: source; first_day and last_day, the first days of both periods.
-- Source: docs/adr/0041-periods.md.
create or replace macro periods_between(source, first_day, last_day) as
    1 + case source_period(source)
        when 'week' then date_diff('day', first_day, last_day) // 7
        when 'half-month'
            then
                2 * date_diff('month', first_day, last_day)
                + cast(day(last_day) > 15 as bigint) - cast(day(first_day) > 15 as bigint)
        else date_diff('month', first_day, last_day)
    end;
