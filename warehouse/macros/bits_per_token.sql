-- Bits per token of all rows of a group together: the sum of losses by the sum of their tokens.
-- An aggregate. Rows without a loss (nll_nats is NULL) count on neither side; NULL without a loss.
create or replace macro bits_per_token(nll_nats, num_tokens) as
    sum(nll_nats) / (ln(2) * sum(num_tokens) filter (nll_nats is not null));
