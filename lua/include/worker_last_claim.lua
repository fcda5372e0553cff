-- worker_last_claim: the field of `working:<worker>` that is no task: the token of its last claim,
-- padded.

local LAST_CLAIM = '#'
-- Behind the token of a claim for a single task while the worker held nothing else, in any queue.
local ALONE = ' alone'
