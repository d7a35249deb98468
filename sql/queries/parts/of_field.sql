-- Whether a waiting job is in the index of its task. Task and field are constants: with parameters, a generic plan
-- could not use the index. `is not false` means the same as `= true` here, but fits no other index of waiting jobs: with
-- statistics from a time when all jobs were locked, the planner would read a whole one of those and sort it.
jobs.is_available is not false
and jobs.task_id = :TASK
