-- The functions that add and remove jobs wake the workers, with a count; the trigger that did so on every insert goes.

drop trigger if exists _900_after_insert on :GRAPHILE_WORKER_SCHEMA._private_jobs;
drop function if exists :GRAPHILE_WORKER_SCHEMA.tg_jobs__after_insert();

\ir parts/add_jobs.sql
\ir parts/remove_job.sql
