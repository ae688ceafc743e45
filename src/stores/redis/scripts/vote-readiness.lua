-- Whether the node votes.
-- KEYS: the node
-- ARGV: probation
-- returns: y, or n<ms> (not yet)
-- @include "vote-node.lua"
return onProbation(KEYS[1], tonumber(ARGV[1])) or 'y'
