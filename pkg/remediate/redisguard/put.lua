#!lua
-- SPDX-License-Identifier: Apache-2.0
-- Stores the copy of a ledger as a whole, unless a later one is there.
-- KEYS[1] is the copy; ARGV: its sequence, its lifetime in seconds, then fields
-- and values, of which the sequence comes last: a copy without one is none.
-- The first line makes a server that has no memory left refuse before anything is
-- done; without it, what follows the first write would be let through.
local FIELDS = 1000 -- unpack has room for some thousands
local stored = redis.pcall('HGET', KEYS[1], 'sequence')
-- Anything that is no number, of the right type or not, is written over.
if type(stored) == 'string' and #stored <= 16 and string.find(stored, '^%d+$') and tonumber(stored) > tonumber(ARGV[1]) then
  return {'stale', stored}
end
redis.call('DEL', KEYS[1])
for first = 3, #ARGV, FIELDS do
  redis.call('HSET', KEYS[1], unpack(ARGV, first, math.min(first + FIELDS - 1, #ARGV)))
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return {'stored', ARGV[1]}
