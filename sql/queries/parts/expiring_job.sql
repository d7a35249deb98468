-- The document of a job, `:SPEC`, with the flag of the time at which it expires. The text of its payload stays as it is.
\set FLAGS given.flags
\set AT given.expires_at
\set IN given.expires_in
(
  select pg_catalog.json_object_agg(fields.name, fields.value)
    from (
      select field.key as name, field.value
        from pg_catalog.json_each(:SPEC) as field
       where field.key <> 'flags'::text
      union all
      select 'flags'::text,
             pg_catalog.to_json(
               \ir flags_expiring.sql
             )
        from (
          select case
                   when :SPEC->>'flags'::text is not null
                   then array(select pg_catalog.json_array_elements_text(:SPEC->'flags'::text))
                 end as flags,
                 (:SPEC->>'expires_at'::text)::timestamptz as expires_at,
                 (:SPEC->>'expires_in'::text)::double precision as expires_in
        ) as given
    ) as fields
)
