-- needs: what a queue asks of those who change it. The first use of a feature that older scripts
-- would break raises `needs` in `meta`, and older ones refuse from then on.

-- The highest that these scripts know.
local NEEDS_KNOWN = 1
