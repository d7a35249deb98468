--! breaking
-- Nothing changes but the meaning of `locked_by`: from here on it names a pool of workers and no longer one worker,
-- so a worker of before and one of after must not share the tables.

select 1;
