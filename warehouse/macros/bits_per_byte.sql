-- Bits per byte of all rows of a group together: the sum of losses by the sum of their bytes.
-- An aggregate. Rows without a loss (nll_nats is NULL) count on neither side; NULL without a loss.
create or replace macro bits_per_byte(nll_nats, num_bytes) as
    sum(nll_nats) / (ln(2) * sum(num_bytes) filter (nll_nats is not null));
