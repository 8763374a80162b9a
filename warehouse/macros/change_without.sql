-- How much a mean of months changes without a block of them. For jackknife_variance.
-- Parameters: block_sum and block_months of the block; all_sum and all_months of all months. NULL
--   if the block has all months.
create or replace macro change_without(block_sum, block_months, all_sum, all_months) as
    (all_sum - block_sum) / nullif(all_months - block_months, 0) - all_sum / all_months;
