-- Whether a waiting job is in the index of its task. Task and field are constants: with parameters, a generic plan
-- could not use the index.
jobs.is_available = true
and jobs.task_id = :TASK
