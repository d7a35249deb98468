-- Jobs that are unique for a time. A row stays until its time is over, also when its job has ended before.
-- Each row is changed once, when its job has an id. With room on its page, that changes no index.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_unique (
  key text constraint gw_unique_pkey primary key,
  job_id bigint not null,
  added_at timestamptz not null,
  expires_at timestamptz not null
) with (fillfactor = 50);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_unique enable row level security;

create index if not exists gw_unique_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_unique (expires_at);

-- Add each job of a document unless one was added under its key within its time. Returns for each, in the order of the
-- document, the job or the one that was added then; `is_new` is whether it was added.
-- All sessions take the keys in the same order. With the same keys, one waits for the other's transaction.
-- A session keeps its plans. One made while the table is empty would read the whole table: hence `enable_seqscan`. One
-- made for few jobs would compare each job with each: hence there are no joins, but look-ups and arrays.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
  specs json, out job :GRAPHILE_WORKER_SCHEMA._private_jobs, out is_new boolean
)
returns setof record
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_are_new boolean[];
  v_ids bigint[];
begin
  -- Until the job has an id, the row has its place in the document.
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier (key, job_id, added_at, expires_at)
  select distinct on (given.unique_key)
         given.unique_key,
         - given.place,
         clock_timestamp(),
         clock_timestamp() + make_interval(secs => given.period_seconds)
    from (
      \ir parts/unique_jobs.sql
    ) as given
   order by given.unique_key, given.place
  on conflict (key) do update
     set job_id = excluded.job_id, added_at = excluded.added_at, expires_at = excluded.expires_at
   where earlier.expires_at <= clock_timestamp();

  v_are_new := array(
    select (
             select earlier.job_id = - given.place
               from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
              where earlier.key = given.unique_key
           )
      from (
        \ir parts/unique_jobs.sql
      ) as given
     order by given.place
  );

  if true = any(v_are_new) then
    -- Jobs with a job key may come back in another order than they were given in; the others do not.
    v_ids := array(
      select stored.id
        from :GRAPHILE_WORKER_SCHEMA.add_jobs(
               array(
                 select (
                          spec.task,
                          spec.payload,
                          spec.queue_name,
                          coalesce(spec.run_at, now() + make_interval(secs => spec.delay)),
                          spec.max_attempts,
                          spec.job_key,
                          spec.priority,
                          spec.flags
                        ):::GRAPHILE_WORKER_SCHEMA.job_spec
                   from (
                     \ir parts/unique_jobs.sql
                   ) as given
                  cross join lateral json_to_record(given.job) as spec (
                          task text,
                          payload json,
                          queue_name text,
                          run_at timestamptz,
                          delay double precision,
                          max_attempts smallint,
                          job_key text,
                          priority smallint,
                          flags text[]
                        )
                  where v_are_new[given.place]
                  order by given.place
               )
             ) with ordinality as stored
       where stored.key is null
       order by stored.ordinality
    );

    insert into :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier (key, job_id, added_at, expires_at)
    select given.unique_key,
           case
             when given.job_key is null then v_ids[given.number]
             else (
               select jobs.id from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.key = given.job_key
             )
           end,
           clock_timestamp(),
           clock_timestamp()
      from (
        select given.unique_key,
               given.job->>'job_key' as job_key,
               row_number() over (partition by given.job->>'job_key' is null order by given.place) as number
          from (
            \ir parts/unique_jobs.sql
          ) as given
         where v_are_new[given.place]
      ) as given
    on conflict (key) do update
       set job_id = excluded.job_id;
  end if;

  return query
    select case
             when known.id is not null then known.job
             -- It has ended: this is what is known of it.
             else json_populate_record(
                    null:::GRAPHILE_WORKER_SCHEMA._private_jobs,
                    json_build_object(
                      'id', earlier.job_id,
                      'payload', given.job->'payload',
                      'priority', coalesce((given.job->>'priority')::integer, 0),
                      'run_at', earlier.added_at,
                      'attempts', 0,
                      'max_attempts', coalesce((given.job->>'max_attempts')::integer, 25),
                      'created_at', earlier.added_at,
                      'updated_at', earlier.added_at,
                      'key', given.job->>'job_key',
                      'revision', 0
                    )
                  )
           end,
           v_are_new[given.place]
      from (
        \ir parts/unique_jobs.sql
      ) as given
     cross join lateral (
             select unique_jobs.job_id, unique_jobs.added_at
               from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as unique_jobs
              where unique_jobs.key = given.unique_key
             offset 0
           ) as earlier
      left join lateral (
             select jobs.id, jobs as job
               from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
              where jobs.id = earlier.job_id
             offset 0
           ) as known on true
     order by given.place;
end;
$gw$;
