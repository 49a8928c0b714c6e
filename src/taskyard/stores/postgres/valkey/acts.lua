-- Makes a list of acts as one step. KEYS[1] is the prefix of the project's keys; ARGV[1] the acts, as JSON.
local prefix, acts = KEYS[1], cjson.decode(ARGV[1])
local SENT_FOR = 10 -- seconds for which a message is known as sent
local LIST_MOST = 1000 -- hints in one list: more wake no more workers than there are
local LIST_KEPT = 86400 -- seconds that a list outlives its last hint

-- A key that holds another type was put there by somebody else. Nothing in it is worth keeping.
local function ask(command, key, ...)
    local answer = redis.pcall(command, key, ...)
    if type(answer) == 'table' and answer.err and string.find(answer.err, 'WRONGTYPE', 1, true) then
        redis.call('DEL', key)
        answer = redis.pcall(command, key, ...)
    end
    return answer
end

local function held(task)
    local fine, lock = pcall(cjson.decode, ask('GET', prefix .. 'lock:' .. task) or '')
    return fine and type(lock) == 'table' and lock or {}
end

local function lists(kind, priority, assignee)
    local level = prefix .. 'ready:' .. priority .. ':'
    if assignee ~= '' then
        return {level .. '@' .. assignee}
    end
    return {level .. kind, level .. '*'}
end

local verbs = {}
local fresh = {} -- names of messages that were not sent before

-- Show who holds a task. An older claim never replaces a newer one, unless that would stay for ever.
function verbs.take(task, fence, lock, milliseconds)
    local key = prefix .. 'lock:' .. task
    local other = tonumber(held(task).fence)
    if not (other and other > fence and redis.call('PTTL', key) > 0) then
        ask('SET', key, lock, 'PX', milliseconds)
    end
end

function verbs.free(task, claim)
    if held(task).claim == claim then
        redis.call('DEL', prefix .. 'lock:' .. task)
    end
end

-- Put a task into its lists. With the name of a message: only if that was not sent before, or it would bring back a task that was taken since.
function verbs.push(id, kind, priority, assignee, score, name)
    if name and not fresh[name] then
        return
    end
    for _, list in ipairs(lists(kind, priority, assignee)) do
        if ask('ZCARD', list) < LIST_MOST then
            ask('ZADD', list, 'NX', score, id)
            redis.call('EXPIRE', list, LIST_KEPT)
        end
    end
end

function verbs.pull(id, kind, priority, assignee)
    for _, list in ipairs(lists(kind, priority, assignee)) do
        ask('ZREM', list, id)
    end
end

-- Send a message, once for each name.
function verbs.say(name, message)
    local sent, time = prefix .. 'sent', tonumber(redis.call('TIME')[1])
    if name ~= '' and ask('ZSCORE', sent, name) then
        return
    end
    fresh[name] = true
    if redis.call('PUBLISH', prefix .. 'events', message) > 0 and name ~= '' then
        ask('ZADD', sent, time, name)
        ask('ZREMRANGEBYSCORE', sent, '-inf', time - SENT_FOR)
        redis.call('EXPIRE', sent, 2 * SENT_FOR)
    end
end

-- A task was popped and could not be claimed: what is given back next may free it.
function verbs.held_back()
    redis.call('SET', prefix .. 'held_back', 1, 'EX', 60)
end

function verbs.freed()
    if redis.call('DEL', prefix .. 'held_back') > 0 then
        redis.call('PUBLISH', prefix .. 'look', 'freed')
    end
end

function verbs.look(why)
    redis.call('PUBLISH', prefix .. 'look', why)
end

local first = acts[1]
if first and first[1] == 'advance' then -- go on from a place in the log, if no other process was quicker
    table.remove(acts, 1)
    if (ask('GET', prefix .. 'cursor') or '') ~= first[2] then
        return 0
    end
    ask('SET', prefix .. 'cursor', first[3], 'EX', LIST_KEPT)
end
for _, act in ipairs(acts) do
    verbs[act[1]](unpack(act, 2))
end
return 1
