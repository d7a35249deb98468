-- Record jobs that others end, for this many seconds. Creating the trigger briefly locks the jobs table.
drop trigger if exists _private_gw_record_others on :GRAPHILE_WORKER_SCHEMA._private_jobs;
create trigger _private_gw_record_others
  after delete on :GRAPHILE_WORKER_SCHEMA._private_jobs
  referencing old table as ended
  for each statement execute function :GRAPHILE_WORKER_SCHEMA._private_gw_record_others(:SECONDS)
