-- Replaces a record, if it is still the one that was read. KEYS: 1 record. ARGV: 1 sha1 of the record that was read, 2
-- the new record, 3 '1' if it is empty; it then stays for ten minutes, so that its revision continues. Returns 1 or 0.

if redis.sha1hex(redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[3] == '1' then
  redis.call('SET', KEYS[1], ARGV[2], 'EX', 600)
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1
