-- needs: what a queue requires of the programs that change it. The first use of a feature that
-- older scripts would break raises `needs` in `meta`, and older scripts refuse from then on.

-- The highest number that these scripts know.
local NEEDS_KNOWN = 1
