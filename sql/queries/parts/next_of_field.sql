-- The value and the priority of the first waiting job after `:AFTER`.
select
  \ir field_value.sql
  as value,
  jobs.priority::integer as priority
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where
   \ir of_field.sql
   and (
     \ir field_value.sql
     , jobs.priority
   ) > (:AFTER)
 order by
   \ir field_value.sql
   , jobs.priority
 limit 1
