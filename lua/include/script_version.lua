-- script_version: the version of the scripts that a queue requires. The first use of a feature that
-- older scripts would break raises `needs` in `meta`; from then on, older scripts refuse.

-- The highest number that these scripts know.
local NEEDS_KNOWN = 7
-- Lanes: older scripts would offer a task before its turn, and would not pass permits on.
local NEEDS_OF_LANES = 2
-- Limits: older scripts would start tasks that must wait, and would not give permits back.
local NEEDS_OF_LIMITS = 3
-- Prerequisites: older scripts would not free the tasks that wait for a task.
local NEEDS_OF_AFTER = 4
-- Groups and results that are handed on: older scripts would not count members, and would start
-- tasks without their input.
local NEEDS_OF_GROUPS = 5
-- Tasks that run together: older scripts would not let them continue.
local NEEDS_OF_GATHER = 6
-- Widths of lanes that were set at run time: older scripts would use the widths of the tasks.
local NEEDS_OF_WIDTHS = 7
