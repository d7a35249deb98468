-- Delete the entries of jobs whose time to start is over and that have started or are gone, at most 10,000.
-- Jobs are looked up one by one: with a join, the planner could read their whole table. A job that a worker holds keeps
-- its entry, because its worker can return it before it starts.
\set FLAGS jobs.flags
with due as materialized (
  select listed.job_id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed
   where listed.expires_at <= now()
     and (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.id = listed.job_id
              and jobs.last_error is null
              and (jobs.attempts = 0 or jobs.locked_at is not null)
              and
              \ir parts/expires_at.sql
              is not null
         ) is null
   limit 10000
     for update skip locked
)
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed
 where listed.job_id = any(array(select due.job_id from due))
returning listed.job_id
