-- The jobs of a document, `specs`, in their order.
select given.*
  from rows from (
         json_to_recordset(specs) as (job json, unique_key text, period_seconds double precision)
       ) with ordinality as given (job, unique_key, period_seconds, place)
