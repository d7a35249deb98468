-- The last row of a claim. It has no job's id, but in other columns:
-- * the names of the queues that are now locked, as JSON: to look each job's up would take a tenth of the claim;
-- * whether all other waiting jobs are in the only queue that is now locked, so that another claim finds nothing;
-- * the queue at which a scan stopped, where the next claim goes on.
union all
select null, null, cast(report.names as :JSON), is_rest.locked::integer, null, null, null, null, null, null, null, null,
       (
         select scan.queue_id
           from scan
          where scan.steps >= %(scan_limit)s::bigint
            and scan.queue_id is not null
       ),
       null, null, null
  from (
         select count(*) as queues,
                min(queue_rows.id) as first_id,
                pg_catalog.json_object_agg(queue_rows.id, queue_rows.queue_name) as names
           from queue_rows
       ) as report
 cross join lateral (
         select report.queues = 1
            and %(queued_priorities)s::int[] is null
            and not exists (select from unqueued_priorities where priority is not null)
            and (
                  \set FROM 'and jobs.job_queue_id < report.first_id'
                  \ir parts/next_queue.sql
                ) is null
            and (
                  \set FROM 'and jobs.job_queue_id > report.first_id'
                  \ir parts/next_queue.sql
                ) is null
       ) as is_rest (locked)
