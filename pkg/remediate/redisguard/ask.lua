#!lua flags=no-writes
-- SPDX-License-Identifier: Apache-2.0
-- Holds a request against the copy of a ledger, as ledger.Gates does against the
-- ledger: same gates, same order. It writes nothing and asks no clock.
-- KEYS[1] is the copy; ARGV is listed in question.go, what the copy holds in copy.go.
local sequence = tonumber(ARGV[1])
local policy, target, step = ARGV[2], ARGV[3], ARGV[4]
local now, hour, day, cooldown, open = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local needs_breaker = ARGV[10] == '1'
local max_entries, max_breakers = tonumber(ARGV[11]), tonumber(ARGV[12])
local WIDTH = 12

local found = redis.pcall('HMGET', KEYS[1], 'sequence', 'grants-from', 'breakers', 'open', 'ended',
  'open/' .. policy, 'ended/' .. policy, 'breaker/' .. policy, 'target/' .. target, 'step/' .. step)
if found.err then
  if string.find(found.err, 'WRONGTYPE', 1, true) then return {'damaged'} end
  return found
end

local function whole(text)
  if type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') then error('no number') end
  return tonumber(text)
end

-- The times at which entries ended, ascending, in WIDTH digits each.
local function time(ended, i) return whole(string.sub(ended, i * WIDTH + 1, (i + 1) * WIDTH)) end

local function times(ended)
  if #ended % WIDTH ~= 0 then error('no times') end
  return #ended / WIDTH
end

-- How many of them are after a time.
local function after(ended, cut)
  local n = times(ended)
  local low, high = 0, n
  while low < high do
    local middle = math.floor((low + high) / 2)
    if time(ended, middle) > cut then high = middle else low = middle + 1 end
  end
  return n - low
end

local function refused(gate, count, base)
  return {'refused', gate, string.format('%.0f', count), base and string.format('%.0f', base) or ''}
end

local function breaker_gate(breaker)
  if not breaker or breaker == 'closed' then return end
  if breaker == 'stuck' or breaker == 'probing' then return refused('CircuitBreaker', 0) end
  local since = whole(breaker)
  if since > open then return refused('CircuitBreaker', 0, since) end
end

local function target_gate(last)
  if not last then return end
  if last == 'written' then return refused('TargetCooldown', 1) end
  local at = whole(last)
  if at > cooldown then return refused('TargetCooldown', 0, at) end
end

local function cooldown_gate(ended)
  local n = times(ended)
  if n == 0 then return end
  local last = time(ended, n - 1)
  if last > cooldown then return refused('Cooldown', 0, last) end
end

local function concurrent(gate, limit, unended)
  limit = tonumber(limit)
  if limit and unended >= limit then return refused(gate, unended) end
end

-- When it opens: after the first k have gone n-k are left, and limit-1 may be.
local function within(gate, limit, unended, ended, cut)
  limit = tonumber(limit)
  if not limit then return end
  local n = unended + after(ended, cut)
  if n < limit then return end
  if unended >= limit then return refused(gate, n) end
  return refused(gate, n, time(ended, times(ended) + unended - limit))
end

local function gates()
  local stored = whole(found[1])
  if stored < sequence then return {'behind', found[1]} end
  if stored > sequence then return {'stale', found[1]} end
  -- The ledger knows what it granted; who repeats himself needs no second place.
  if found[10] then return {'allowed'} end
  if found[2] and whole(found[2]) > now then return refused('LedgerAge', 0, whole(found[2])) end
  local unended, ended = whole(found[4]), found[5] or ''
  local entries = unended + after(ended, day)
  if entries >= max_entries or needs_breaker and not found[8] and whole(found[3]) >= max_breakers then
    return refused('LedgerRoom', entries)
  end
  local own_unended, own_ended = found[6] and whole(found[6]) or 0, found[7] or ''
  return breaker_gate(found[8])
    or target_gate(found[9])
    or cooldown_gate(own_ended)
    or concurrent('MaxConcurrent', ARGV[13], own_unended)
    or within('MaxPerHour', ARGV[14], own_unended, own_ended, hour)
    or within('MaxPerDay', ARGV[15], own_unended, own_ended, day)
    or concurrent('CapConcurrent', ARGV[16], unended)
    or within('CapPerHour', ARGV[17], unended, ended, hour)
    or within('CapPerDay', ARGV[18], unended, ended, day)
    or {'allowed'}
end

if not found[1] then return {'missing'} end
local understood, answer = pcall(gates)
if not understood then return {'damaged'} end
return answer
