-- Whether a waiting job is in the index of its task. Task and field are constants, or no general plan could use the index.
jobs.is_available = true
and jobs.task_id = :TASK
