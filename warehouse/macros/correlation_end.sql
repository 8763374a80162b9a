-- Lower or upper end of the interval of a correlation, by Fisher's transformation.
-- Parameters: correlation; num_pairs (result NULL below 4); deviate, the signed normal quantile,
--   times sqrt(1.06) for ranks. For a correlation of 1 or -1, both ends equal the correlation.
-- Source: Fisher 1921; Fieller, Hartley and Pearson 1957, "Tests for Rank Correlation
-- Coefficients".
create or replace macro correlation_end(correlation, num_pairs, deviate) as
    case
        when num_pairs < 4 then null
        when abs(correlation) >= 1 - 1e-12 then correlation
        else tanh(atanh(correlation) + deviate / sqrt(nullif(num_pairs - 3, 0)))
    end;
