-- The period of a source's partitions, by its name: month, half-month or week.
-- Parameter: source. Names such as govuk:half-month end with another period than months.
-- Source: docs/adr/0041-periods.md.
create or replace macro source_period(source) as
    case
        when source like '_%:half-month' then 'half-month'
        when source like '_%:week' then 'week'
        else 'month'
    end;
