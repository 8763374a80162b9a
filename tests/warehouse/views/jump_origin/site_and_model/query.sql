select
    source,
    month,
    verdict,
    is_difficulty,
    is_compressor,
    is_model,
    case when is_model then model end as model
from jump_origin
where verdict not in ('none', 'unknown')
