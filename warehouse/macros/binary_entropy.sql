-- Entropy of a yes or no with probability p, in bits; 0 if p is 0 or 1.
create or replace macro binary_entropy(p) as
    case when p > 0 and p < 1 then -p * log2(p) - (1 - p) * log2(1 - p) else p * 0e0 end;
