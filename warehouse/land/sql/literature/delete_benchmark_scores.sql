-- Delete the loaded scores that the changed scores replace.
delete from internal.benchmark_scores as loaded
using changed_benchmark_scores as changed
where loaded.model = changed.model and loaded.benchmark = changed.benchmark;
