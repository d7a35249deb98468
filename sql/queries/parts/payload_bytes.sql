-- The size of a payload in memory. Only a large one may be stored compressed, and is unpacked to find out.
case
  when pg_catalog.pg_column_size(jobs.payload) < 2000 then pg_catalog.pg_column_size(jobs.payload)
  else octet_length(jobs.payload::text)
end
