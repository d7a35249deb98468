-- When the running attempt started: as its lock was renewed, or `locked_at` as long as it was not; null when none runs.
case when :JOB.locked_at is not null then coalesce(
  (select notes.started_at
     from :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks as notes
    where notes.worker_id = :JOB.locked_by
      and notes.job_id = :JOB.id
      and notes.locked_at = :JOB.locked_at),
  :JOB.locked_at
) end
