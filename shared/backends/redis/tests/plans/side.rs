//! A namespace that is inspected from outside, and pseudo-random numbers.

use std::collections::BTreeMap;

use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

/// Pseudo-random numbers, the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % sides
    }

    pub fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// Keys that match a pattern, their types and values, in one round trip.
const ALL: &str = "local all = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local kind, values = redis.call('TYPE', key).ok
  if kind == 'hash' then values = redis.call('HGETALL', key)
  elseif kind == 'list' then values = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then values = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then values = redis.call('SMEMBERS', key) else error(key .. ' is a ' .. kind) end
  all[#all + 1] = { key, kind, values }
end
return all";

pub struct Side {
    pub store: Redis,
    namespace: &'static str,
    link: redis::Connection,
}

impl Side {
    /// In `again` no small function writes a commit.
    pub async fn new(server: &RedisServer, namespace: &'static str, history_max: u64) -> Side {
        let options = Options {
            small_functions: namespace != "again",
            namespace: namespace.to_owned(),
            shards: 1,
            history_max,
            instance_bytes: 10 << 10,
            grace_ms: 0,
            ..Options::single(server.url())
        };
        let client = redis::Client::open(server.url()).unwrap();
        Side {
            store: Redis::connect(options).await.unwrap(),
            namespace,
            link: client.get_connection().unwrap(),
        }
    }

    /// Restarts the numbers of leases and effects, which begin with a time that differs between the sides.
    pub fn count_from_one(&mut self, instance: &str) {
        let key = format!("{{{}:0}}:i:{instance}", self.namespace);
        let set: redis::RedisResult<i64> = redis::cmd("HSET")
            .arg(key)
            .arg("n")
            .arg(0)
            .query(&mut self.link);
        set.unwrap();
    }

    /// All keys with their values, without times, processes and the namespace.
    pub fn dump(&mut self) -> Vec<String> {
        let pattern = format!("{{{}:*", self.namespace);
        let all = redis::cmd("EVAL")
            .arg(ALL)
            .arg(0)
            .arg(pattern)
            .query(&mut self.link);
        let mut keys: Vec<(String, String, Vec<Vec<u8>>)> = all.unwrap();
        keys.sort();
        let mut lines = Vec::new();
        // The counts of starts and ends depend on the time.
        keys.retain(|(key, ..)| !key.ends_with(":trend"));
        for (key, kind, mut values) in keys {
            for pair in values.chunks_mut(2) {
                // When the fork was made, among its numbers.
                if kind == "hash" && pair[0].starts_with(b"g:") {
                    pair[1][30..38].fill(0);
                }
            }
            let texts: Vec<String> = values.iter().map(|value| self.plain_text(value)).collect();
            let mut texts = match kind.as_str() {
                "list" | "set" => texts,
                _ => texts.chunks(2).map(|pair| pair.join(" = ")).collect(),
            };
            if kind != "list" {
                texts.sort();
            }
            let key = key.replace(self.namespace, "NS");
            let texts = texts.into_iter().map(|text| masked(&text));
            lines.extend(texts.map(|text| format!("{key}: {text}")));
        }
        lines
    }

    /// Checks that the size that each instance stores is the sum of its records.
    pub fn check_weight(&mut self) {
        for instance in self.instances() {
            let fields: Vec<(String, Vec<u8>)> = redis::cmd("HGETALL")
                .arg(&instance)
                .query(&mut self.link)
                .unwrap();
            let (mut said, mut kib) = (0, 0);
            let mut results = BTreeMap::<&str, usize>::new();
            for (field, value) in &fields {
                match field.split_once(':') {
                    None if field == "z" => {
                        said = String::from_utf8_lossy(value).parse().unwrap();
                        assert!(said > 0);
                    }
                    Some(("r" | "f", _)) => kib += value.len() >> 10,
                    Some(("b", branch)) => {
                        let fork = branch.rsplit_once('.').unwrap().0;
                        *results.entry(fork).or_default() += value.len();
                    }
                    _ => {}
                }
            }
            kib += results.values().map(|bytes| bytes >> 10).sum::<usize>();
            assert_eq!(said, kib, "{instance}");
        }
    }

    fn instances(&mut self) -> Vec<String> {
        let pattern = format!("{{{}:*}}:i:*", self.namespace);
        redis::cmd("KEYS")
            .arg(pattern)
            .query(&mut self.link)
            .unwrap()
    }

    /// The number of functions that the server has run.
    pub fn functions(&mut self) -> u64 {
        let info: String = redis::cmd("INFO")
            .arg("commandstats")
            .query(&mut self.link)
            .unwrap();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_fcall:calls="));
        let count = line.and_then(|line| line.split(',').next());
        count.map_or(0, |count| count.parse().unwrap())
    }

    /// Makes ready scopes older, so that their scores show whether they were set since.
    pub fn age_ready(&mut self) {
        let key = format!("{{{}:0}}:ready", self.namespace);
        let members: Vec<Vec<u8>> = redis::cmd("ZRANGE")
            .arg(&key)
            .arg(0)
            .arg(-1)
            .query(&mut self.link)
            .unwrap();
        for member in members {
            let mut age = redis::cmd("ZADD");
            age.arg(&key).arg("XX").arg(1).arg(member);
            age.exec(&mut self.link).unwrap();
        }
    }

    fn plain_text(&self, bytes: &[u8]) -> String {
        let mut text = String::new();
        let mut digits = String::new();
        let mut rest = bytes.to_vec();
        let process = self.store.process_id().as_bytes();
        if let Some(place) = bytes
            .windows(process.len())
            .position(|part| part == process)
        {
            rest.splice(place..place + process.len(), *b"PROCESS");
        }
        for byte in rest.into_iter().chain([b' ']) {
            if byte.is_ascii_digit() {
                digits.push(byte.into());
                continue;
            }
            // Instants of this millennium in ms and µs, or after a packed number that looks like a digit.
            match digits.len() {
                13 | 16 | 17 | 20 => text.push('#'),
                _ => text.push_str(&digits),
            }
            digits.clear();
            text.extend(std::ascii::escape_default(byte).map(char::from));
        }
        text
    }
}

/// Removes the numbers of leases and effects, which grow with the server's clock. Other numbers aren't as long.
pub fn masked(text: &str) -> String {
    const DIGITS_MIN: usize = 14;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = &rest[begin..];
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let (number, after) = digits.split_at(end.unwrap_or(digits.len()));
        out.push_str(&rest[..begin]);
        out.push_str(if number.len() < DIGITS_MIN {
            number
        } else {
            "N"
        });
        rest = after;
    }
    out + rest
}
