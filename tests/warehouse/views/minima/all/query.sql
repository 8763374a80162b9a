-- A figure is there with one; its interval needs more.
select
    figure,
    counted,
    minimum
from minima
where figure like 'tbi_likelihood%';
