-- The jobs of a document, `specs`, each with its place from 1 on.
select given.job, given.unique_key, given.period_seconds, given.place::integer as place
  from rows from (
         json_to_recordset(specs) as (job json, unique_key text, period_seconds double precision)
       ) with ordinality as given (job, unique_key, period_seconds, place)
