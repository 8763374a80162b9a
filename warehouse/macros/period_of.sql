-- First day of the period of num_months that contains a day; the first starts on 2015-01-01.
-- Parameters: day, a date; num_months, at least 1.
create or replace macro period_of(day, num_months) as
    case
        when num_months < 1 then cast(error('num_months must be at least 1') as date)
        else cast(
            date '2015-01-01'
            + to_months(
                cast(
                    num_months
                    * floor(
                        datediff('month', date '2015-01-01', day) / nullif(num_months, 0)
                    ) as integer
                )
            ) as date
        )
    end;
