-- One job by its id or its key, with its payload, as the session's transaction sees it.
\ir parts/job_with_payload.sql
where jobs.id = coalesce(
        %(id)s::bigint,
        (select keyed.id from :GRAPHILE_WORKER_SCHEMA._private_jobs as keyed where keyed.key = %(job_key)s::text)
      )
