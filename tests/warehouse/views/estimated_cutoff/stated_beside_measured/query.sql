-- No end of the cutoff of twice is told, so nothing contradicts its stated one.
select *
from estimated_cutoff
where source is null
