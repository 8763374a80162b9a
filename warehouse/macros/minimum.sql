-- How many of something a figure needs. View `minima` lists them all.
-- Parameter: name, a constant.
-- Source: docs/cutoffs.md (Minima).
create or replace macro minimum(name) as
    case name
        when 'months of a side' then 3
        when 'blocks of a gap' then 4
        when 'months of a line' then 2
        when 'months of a slope' then 12
        when 'months of the base' then 6
        when 'quarters of a decay' then 2
        when 'blocks of a difference' then 4
        when 'months with an error' then 4
        when 'blocks of a panel' then 4
        when 'months of a cutoff' then 8
        when 'months before a cutoff' then 3
        when 'months after a cutoff' then 2
        when 'months of two changes' then 9
        when 'months of a side of a month' then 2
        when 'months of a jump' then 15
        when 'sizes of a family' then 3
        when 'models of a difficulty' then 2
        when 'models of a line' then 3
        when 'models of a correlation' then 4
        when 'answers of a mean' then 2
        when 'answers to a question' then 3
        when 'bins of a line' then 3
        when 'items of a split' then 2
        when 'right answers of a test' then 5
        when 'answers of a place' then 30
    end;
