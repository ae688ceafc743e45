-- Lets a node vote at once, if it is empty and has run no script since it started: then it has forgotten no vote.
-- KEYS: the node
-- ARGV: the run_id of the server that was found unused
-- returns: 1 if it votes now, else 0
-- To be sent by its text: a hash that is not known counts as a script that ran. This one is counted when it is over.
local info = redis.call('INFO', 'all')
local function says(text)
  return string.find(info, '\n' .. text, 1, true)
end
local known = says('run_id:' .. ARGV[1]) and says('master_replid2:0000000000')
-- Without its own question in them, the counts say nothing. One server names the subcommand of CONFIG, an older one does not.
local counted = says('cmdstat_info:') and not says('cmdstat_config|resetstat:') and not says('cmdstat_config:')
if not known or not counted or says('cmdstat_eval') then return 0 end
return redis.call('SET', KEYS[1], '0', 'NX') and 1 or 0
