-- The numbers of a fork in their stored form, as in numbers.rs: total, open, needed, notifications, done, failed, live
-- (branches that have a record), whether the parent was notified and whether the fork is closed (1 or 0), when it was
-- made, the size of the results, and its limit.
local NUMBERS = '>I4I4I4I4I4I4I4BBI8I8I8'
