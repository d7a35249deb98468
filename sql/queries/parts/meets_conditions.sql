-- Whether a job fits what a look is narrowed by, apart from the names that lead to an index.
-- A payload with \u0000 in it cannot be taken apart by the server: that would end the whole search, so it is passed by.
and (%(flag)s::text is null or jobs.flags ? %(flag)s::text)
and (%(error)s::text is null or strpos(lower(jobs.last_error), lower(%(error)s::text)) > 0)
and (%(priorities)s::int4range is null or jobs.priority::int <@ %(priorities)s::int4range)
and (%(attempts)s::int4range is null or jobs.attempts::int <@ %(attempts)s::int4range)
and (%(run_between)s::tstzrange is null or jobs.run_at <@ %(run_between)s::tstzrange)
and (
      %(started_between)s::tstzrange is null
      or coalesce(
           (select to_timestamp(renewed.started_at)
              from unnest(%(renewed_ids)s::bigint[], %(renewed_locks)s::double precision[],
                          %(renewed_starts)s::double precision[]) as renewed (job_id, locked_at, started_at)
             where renewed.job_id = jobs.id
               and renewed.locked_at = date_part('epoch', jobs.locked_at)),
           jobs.locked_at
         ) <@ %(started_between)s::tstzrange
    )
and (%(payload_text)s::text is null or strpos(lower(jobs.payload::text), lower(%(payload_text)s::text)) > 0)
and case
      when %(payload_path)s::text[] is null then true
      when strpos(jobs.payload::text, '\u0000') > 0 then false
      else jobs.payload #>> %(payload_path)s::text[] = %(payload_value)s::text
    end
