-- Lets a node vote at once, if it is empty and has run no script since it started: then it has forgotten no vote since. What
-- was granted before that is for each client to say, by its own longest lease: the node counts as empty since its start.
-- KEYS: the node
-- ARGV: the run_id of the server that was found unused
-- returns: 1 if it counts as that now, else 0
-- To be sent by its text: a hash that is not known counts as a script that ran. This one is counted when it is over.
local info = redis.call('INFO', 'all')
local function says(text)
  return string.find(info, '\n' .. text, 1, true)
end
local known = says('run_id:' .. ARGV[1]) and says('master_replid2:0000000000')
-- Without its own question in them, the counts say nothing. One server names the subcommand of CONFIG, an older one does not.
local counted = says('cmdstat_info:') and not says('cmdstat_config|resetstat:') and not says('cmdstat_config:')
if not known or not counted or says('cmdstat_eval') then return 0 end
-- Whole seconds: it may have been up for almost one less.
local uptime, time = string.match(info, '\nuptime_in_seconds:(%d+)'), redis.call('TIME')
local since = (time[1] - uptime + 1) * 1000 + math.floor(time[2] / 1000)
return redis.call('SET', KEYS[1], string.format('%.0f', since), 'NX') and 1 or 0
