-- schedule_wakeup: the wakeup that also says that schedules have changed.

-- The worker that receives it sends a claim, as for any wakeup, and looks at the schedules.
local SCHEDULES_CHANGED = 's'
