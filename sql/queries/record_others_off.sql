-- No longer record jobs that others end.
drop trigger if exists _private_gw_record_others on :GRAPHILE_WORKER_SCHEMA._private_jobs
