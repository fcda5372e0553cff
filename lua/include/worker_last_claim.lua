-- worker_last_claim: the one field of `working:<worker>` that is not a task: the token of its last
-- claim, padded.

local LAST_CLAIM = '#'
-- The mark after the token of a claim for one task while the worker held no other task in any
-- queue.
local ALONE = ' alone'
