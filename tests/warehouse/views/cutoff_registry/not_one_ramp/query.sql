-- No end of the cutoff of twice is told, so nothing contradicts its stated one.
select * from cutoff_registry
where source is null
