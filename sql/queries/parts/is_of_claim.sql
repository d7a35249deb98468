-- Whether `:ROW` is still locked by one of these claims of ours, `:CLAIMS`.
-- A claim writes `locked_at`, and a renewal moves it by whole multiples of ten minutes, so the microseconds within ten
-- minutes number the claim for as long as it lasts. `locked_by` alone does not: the same worker may have claimed it again.
-- Inside `case` the planner sees no condition that an index of locked rows could serve: it guesses that nearly no row is
-- locked, walked that index once for each outcome, and took 80 ms instead of 3 for 500 of them.
and case
      when :ROW.locked_by = %(worker_id)s
      then mod(round(date_part('epoch', :ROW.locked_at) * 1000000::float8)::bigint, 600000000::bigint) = any(:CLAIMS)
      else false
    end
