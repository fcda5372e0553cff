-- worker_last_claim: the one field of `working:<worker>` that is not a task: the token of its last
-- claim, padded.

local LAST_CLAIM = '#'
-- Follows the token of a claim for a single task while the worker held nothing else, in any queue.
local ALONE = ' alone'
