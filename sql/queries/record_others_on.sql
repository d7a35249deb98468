-- Record jobs that others end, for a number of seconds. Creating the trigger briefly locks the jobs table.
\set SECONDS 604800
create trigger _private_gw_record_others
  after delete on :GRAPHILE_WORKER_SCHEMA._private_jobs
  referencing old table as ended
  for each statement execute function :GRAPHILE_WORKER_SCHEMA._private_gw_record_others(:SECONDS)
