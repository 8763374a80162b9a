-- Load the changed scores.
insert into benchmark_scores by name
select * from changed_benchmark_scores;
