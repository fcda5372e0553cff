-- last_claim: the field of `working:<worker>` that is no task: the token of its last claim, padded.

local LAST_CLAIM = '#'
