-- Load the changed scores.
insert into internal.benchmark_scores by name
select * from changed_benchmark_scores;
