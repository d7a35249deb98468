-- Whether `:ROW` is still locked by one of these claims, given by the `locked_at` that they wrote, `:CLAIMS`.
-- `locked_by` alone does not say so: the same worker may have claimed the row again.
-- A renewal moves `locked_at` by whole multiples of ten minutes. Few claims are renewed, so that comparison comes second.
-- Inside `case` the planner sees no condition that an index of locked rows could serve. It guesses that almost no row is
-- locked, would scan that index once for each outcome, and would take 80 ms instead of 3 for 500 outcomes.
and case
      when :ROW.locked_by = %(worker_id)s::text
      then :ROW.locked_at = any(:CLAIMS)
        or exists (
             select
               from pg_catalog.unnest(:CLAIMS) as written (locked_at)
              where mod(round(date_part('epoch', :ROW.locked_at - written.locked_at) * 1000000::float8)::bigint, 600000000::bigint) = 0
           )
      else false
    end
