-- Reads the waits of an instance. KEYS: 1 dirty, 2 its waits, 3 events that it consumed. ARGV: 1 instance, 2 an event.
-- Returns the mark, the generation of the event if the instance consumed it, and the fields.

return {
  redis.call('ZSCORE', KEYS[1], ARGV[1]),
  redis.call('ZSCORE', KEYS[3], ARGV[2]),
  redis.call('HGETALL', KEYS[2]),
}
