-- Forget what the changed scores take the place of.
delete from benchmark_scores as loaded
using changed_benchmark_scores as changed
where loaded.model = changed.model and loaded.benchmark = changed.benchmark;
