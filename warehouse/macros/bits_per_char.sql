-- Bits per character of all rows of a group together: the sum of losses by that of characters.
-- An aggregate. Rows without a loss (nll_nats is NULL) count on neither side; NULL without a loss.
create or replace macro bits_per_char(nll_nats, num_chars) as
    sum(nll_nats) / (ln(2) * sum(num_chars) filter (nll_nats is not null));
