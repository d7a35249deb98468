-- How many rows a table or an index may have, `:TABLE` in pg_class: as many on each page as when it was analyzed or
-- vacuumed last. Null before that.
case
  when :TABLE.reltuples > 0::real and :TABLE.relpages > 0
  then :TABLE.reltuples::float8
       * (pg_relation_size(:TABLE.oid::regclass) / current_setting('block_size')::bigint)::float8
       / :TABLE.relpages::float8
end
