-- Jobs that are unique for a time. A row stays until its time is over, also when its job has ended before.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_unique (
  key text constraint gw_unique_pkey primary key,
  job_id bigint not null,
  added_at timestamptz not null,
  expires_at timestamptz not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_unique enable row level security;

create index if not exists gw_unique_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_unique (expires_at);

-- Add each job of a document unless one was added under its key within its time. Returns for each, in the order of the
-- document, the job or the one that was added then; `is_new` is whether it was added.
-- All sessions take the keys in the same order. With the same keys, one waits for the other's transaction.
-- A plan made while the table is empty reads the whole table, and a session keeps it: hence `enable_seqscan`. Without it,
-- 30,000 jobs that one call added took over two minutes.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
  specs json, out job :GRAPHILE_WORKER_SCHEMA._private_jobs, out is_new boolean
)
returns setof record
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_new bigint[];
begin
  with given as materialized (
    \ir parts/unique_jobs.sql
  ),
  claimed as (
    insert into :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier (key, job_id, added_at, expires_at)
    select distinct on (given.unique_key)
           given.unique_key,
           0,
           clock_timestamp(),
           clock_timestamp() + make_interval(secs => given.period_seconds)
      from given
     order by given.unique_key, given.place
    on conflict (key) do update
       set added_at = excluded.added_at, expires_at = excluded.expires_at
     where earlier.expires_at <= clock_timestamp()
    returning earlier.key
  )
  select array_agg(firsts.place) into v_new
    from (
      select min(given.place) as place
        from given
        join claimed on claimed.key = given.unique_key
       group by given.unique_key
    ) as firsts;

  if v_new is not null then
    -- Jobs with a job key may come back in another order than they were given in; the others do not.
    with given as materialized (
      select given.place,
             given.unique_key,
             spec.*,
             row_number() over (partition by spec.job_key is null order by given.place) as number
        from unnest(v_new) as new (place)
        join (
          \ir parts/unique_jobs.sql
        ) as given on given.place = new.place
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
    ),
    added as (
      select stored.id,
             stored.key,
             row_number() over (partition by stored.key is null order by stored.ordinality) as number
        from :GRAPHILE_WORKER_SCHEMA.add_jobs(
               array(
                 select (
                          given.task,
                          given.payload,
                          given.queue_name,
                          coalesce(given.run_at, now() + make_interval(secs => given.delay)),
                          given.max_attempts,
                          given.job_key,
                          given.priority,
                          given.flags
                        ):::GRAPHILE_WORKER_SCHEMA.job_spec
                   from given
                  order by given.place
               )
             ) with ordinality as stored
    )
    update :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
       set job_id = added.id
      from given
      join added on coalesce('key ' || added.key, added.number::text) = coalesce('key ' || given.job_key, given.number::text)
     where earlier.key = given.unique_key;
  end if;

  return query
    select case
             when known.id is not null then known
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
           new.place is not null
      from (
        \ir parts/unique_jobs.sql
      ) as given
      left join :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier on earlier.key = given.unique_key
      left join :GRAPHILE_WORKER_SCHEMA._private_jobs as known on known.id = earlier.job_id
      left join unnest(v_new) as new (place) on new.place = given.place
     order by given.place;
end;
$gw$;
