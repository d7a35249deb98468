-- The document of the job to add, `:JOB`; with `:EXPIRES`, it gets the flag of the time at which it expires. The text of
-- its payload stays as it is.
\if :EXPIRES
\set JOB '(select given.job from given)'
given as materialized (
  select pg_catalog.json_object_agg(fields.name, fields.value) as job
    from (
      select given.key as name, given.value
        from pg_catalog.json_each(%(job)s::text::json) as given
       where given.key <> 'flags'::text
      union all
      select 'flags'::text,
             pg_catalog.to_json(
               :GRAPHILE_WORKER_SCHEMA._private_gw_flags_expiring(
                 case
                   when spec.job->>'flags'::text is not null
                   then array(select pg_catalog.json_array_elements_text(spec.job->'flags'::text))
                 end,
                 coalesce(
                   (spec.job->>'expires_at'::text)::timestamptz,
                   now() + make_interval(secs => (spec.job->>'expires_in'::text)::double precision)
                 )
               )
             )
        from (select %(job)s::text::json as job) as spec
    ) as fields
),
\endif
