//! Scripts and functions that run within Redis. Operations on instances are functions, whose code is compiled once,
//! when it is loaded; compiling it for each call would cost more than running it. Small scripts are called by their
//! hashes. If a server doesn't know a script or function (because it is new, or another one took over), it is sent
//! once.

use std::sync::LazyLock;

use redis::{Arg, Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, ToRedisArgs, Value};
use swirl_ports::Result;

use crate::Redis;
use crate::connect::damaged;
use crate::line::On;

/// What functions know about the numbers of a fork.
pub(crate) const NUMBERS: &str = include_str!("lua/numbers.lua");
/// What the functions that write commits share.
pub(crate) const COMMITS: &str = include_str!("lua/commits.lua");
/// The code with which every operation on an instance begins.
pub(crate) const PRELUDE: &str = include_str!("lua/prelude.lua");

/// Most calls have fewer arguments and bytes, so that they are allocated once.
const USUAL_ARGS: usize = 64;
const USUAL_BYTES: usize = 2_048;

pub(crate) struct Script {
    source: String,
    /// The hash of a script, or the name of a function.
    name: String,
    kind: Kind,
}

/// The suffix of a function that also runs when a server has no memory left. It is for operations that free memory, and
/// for the small writes that lead to them.
const FREEING: &str = "_f";

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Script,
    Function,
}

impl Script {
    /// Joins the parts. When a server has no memory left, the script may only delete.
    pub fn new(parts: &[&str]) -> Script {
        Script::small(parts.join("\n"))
    }

    /// A small script that also runs when a server has no memory left.
    pub fn freeing_small(part: &str) -> Script {
        Script::small(format!("#!lua flags=allow-oom\n{part}"))
    }

    fn small(source: String) -> Script {
        let name = redis::Script::new(&source).get_hash().to_owned();
        Script {
            source,
            name,
            kind: Kind::Script,
        }
    }

    /// An operation on an instance. The last part is its body; the parts before it contain functions, and no state that
    /// outlives a call. The name changes with the code, so that two versions can coexist.
    pub fn of_instance(parts: &[&str]) -> Script {
        let (body, libraries) = parts.split_last().unwrap_or((&"", &[]));
        let libraries = libraries.join("\n");
        let code = format!("{NUMBERS}{PRELUDE}\n{libraries}\nlocal function main()\n{body}\nend\n");
        Script::function(
            &code,
            "function(keys, argv) return run(keys, argv, main) end",
        )
    }

    /// An operation that doesn't need the prelude: `main(KEYS, ARGV)`.
    pub fn alone(code: &str) -> Script {
        Script::function(code, "main")
    }

    /// The same, for commits.
    pub fn of_commit(code: &str) -> Script {
        Script::alone(&[NUMBERS, COMMITS, code].concat())
    }

    fn function(code: &str, main: &str) -> Script {
        let end = |name: &str| {
            format!(
                "redis.register_function('{name}', {main})\n\
                 redis.register_function{{function_name = '{name}{FREEING}', callback = {main}, \
                 flags = {{'allow-oom'}}}}\n"
            )
        };
        let hash = blake3::hash(format!("{code}{}", end("")).as_bytes());
        let name = format!("swirl_{}", &hash.to_hex()[..16]);
        let source = format!("#!lua name={name}\n{code}{}", end(&name));
        Script {
            source,
            name,
            kind: Kind::Function,
        }
    }

    /// The same function, which also runs when a server has no memory left.
    pub fn freeing(self) -> Script {
        Script {
            name: format!("{}{FREEING}", self.name),
            ..self
        }
    }

    pub fn call(&self, keys: &[String]) -> Cmd {
        let mut cmd = Cmd::with_capacity(USUAL_ARGS, USUAL_BYTES);
        cmd.arg(match self.kind {
            Kind::Script => "EVALSHA",
            Kind::Function => "FCALL",
        });
        cmd.arg(&self.name).arg(keys.len()).arg(keys);
        cmd
    }

    /// The same call with the source of the script.
    fn whole(&self, call: &Cmd) -> Cmd {
        let mut cmd = Cmd::new();
        cmd.arg("EVAL").arg(&self.source);
        for arg in call.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                cmd.arg(arg);
            }
        }
        cmd
    }

    fn is_unknown(&self, error: &RedisError) -> bool {
        match self.kind {
            Kind::Script => error.kind() == ErrorKind::Server(ServerErrorKind::NoScript),
            Kind::Function => error
                .detail()
                .is_some_and(|detail| detail.contains("Function not found")),
        }
    }
}

/// A script as a `static`.
pub(crate) type Lazy = LazyLock<Script>;

impl Redis {
    /// Carries out a call that [`Script::call`] began. All keys must share one hash tag.
    pub(crate) fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        call: Cmd,
    ) -> impl Future<Output = Result<T>> {
        self.run_on(script, call, On::Shared)
    }

    /// The same for a call with a large argument or answer. Few of them are under way at a time.
    pub(crate) async fn run_aside<T: FromRedisValue>(
        &self,
        script: &Script,
        call: Cmd,
    ) -> Result<T> {
        let _place = self.large_reads().acquire().await;
        self.run_on(script, call, On::Aside).await
    }

    pub(crate) async fn run_on<T: FromRedisValue>(
        &self,
        script: &Script,
        call: Cmd,
        on: On,
    ) -> Result<T> {
        let value = match self.send_on(&call, on).await {
            Err(error) if script.is_unknown(&error) => self.introduce(script, &call, on).await,
            other => other,
        };
        let value = value.map_err(crate::connect::error)?;
        T::from_redis_value(value).map_err(|error| damaged("the answer of a script", error))
    }

    /// Loads and calls a script that a server doesn't know yet.
    async fn introduce(&self, script: &Script, call: &Cmd, on: On) -> redis::RedisResult<Value> {
        if script.kind == Kind::Script {
            return self.send_on(&script.whole(call), on).await;
        }
        let mut load = Cmd::new();
        load.arg("FUNCTION").arg("LOAD").arg("REPLACE");
        load.arg(&script.source);
        self.inner.link.send_beside(&load, call).await?;
        self.send_on(call, on).await
    }

    /// Loads functions before they are needed, since a server without memory refuses new ones.
    pub(crate) async fn prepare(&self, scripts: &[&Script]) {
        for script in scripts {
            let mut load = Cmd::new();
            load.arg("FUNCTION").arg("LOAD").arg(&script.source);
            for loaded in self.inner.link.send_to_masters(&load).await {
                match loaded {
                    Ok(_) => {}
                    Err(error) if error.to_string().contains("already exists") => {}
                    Err(error) => {
                        tracing::debug!(%error, "a function cannot be loaded yet; it is sent when it is needed")
                    }
                }
            }
        }
    }

    /// Calls a script. All keys must share one hash tag.
    pub(crate) async fn eval<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        args: &[impl ToRedisArgs],
    ) -> Result<T> {
        let mut call = script.call(keys);
        for arg in args {
            call.arg(arg);
        }
        self.run(script, call).await
    }

    /// Carries out commands that only read.
    pub(crate) async fn read_all<T: FromRedisValue>(&self, cmds: &[Cmd]) -> Result<Vec<T>> {
        let values = self.inner.link.send_reads(cmds).await;
        let values = values.map_err(crate::connect::error)?.into_iter();
        let read = |value| T::from_redis_value(value).map_err(|error| damaged("an answer", error));
        values.map(read).collect()
    }

    /// Carries out writes and then reads, and returns the responses to the reads. Writes may be carried out twice.
    pub(crate) async fn write_then_read<T: FromRedisValue>(
        &self,
        writes: &[Cmd],
        reads: &[Cmd],
    ) -> Result<Vec<T>> {
        let values = self.inner.link.send_writes_and_reads(writes, reads).await;
        let values = values.map_err(crate::connect::error)?.into_iter();
        let read = |value| T::from_redis_value(value).map_err(|error| damaged("an answer", error));
        values.map(read).collect()
    }

    /// Carries out commands, and then the call of a script. On a single server that is one round trip. Returns only the
    /// response to the call.
    pub(crate) async fn run_after<T: FromRedisValue>(
        &self,
        mut first: Vec<Cmd>,
        script: &Script,
        call: Cmd,
    ) -> Result<T> {
        if first.is_empty() {
            return self.run(script, call).await;
        }
        first.push(call);
        let answers = self.inner.link.send_in_order(&first).await;
        let mut answers = answers.map_err(crate::connect::error)?;
        let (Some(last), Some(call)) = (answers.pop(), first.pop()) else {
            return Err(damaged("the answers of a pipeline", "they are too few"));
        };
        for answer in answers {
            answer.map_err(crate::connect::error)?;
        }
        let value = match last {
            Err(error) if script.is_unknown(&error) => {
                self.introduce(script, &call, On::Shared).await
            }
            other => other,
        };
        let value = value.map_err(crate::connect::error)?;
        T::from_redis_value(value).map_err(|error| damaged("the answer of a script", error))
    }

    /// Carries out one command.
    pub(crate) fn query<T: FromRedisValue>(&self, cmd: Cmd) -> impl Future<Output = Result<T>> {
        self.query_on(cmd, On::Shared)
    }

    /// The same for a command with a large answer.
    pub(crate) async fn query_aside<T: FromRedisValue>(&self, cmd: Cmd) -> Result<T> {
        let _place = self.large_reads().acquire().await;
        self.query_on(cmd, On::Aside).await
    }

    pub(crate) async fn query_on<T: FromRedisValue>(&self, cmd: Cmd, on: On) -> Result<T> {
        let value = self.send_on(&cmd, on).await;
        let value = value.map_err(crate::connect::error)?;
        T::from_redis_value(value).map_err(|error| damaged("an answer", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_script_has_the_same_arguments() {
        let script = Script::new(&["return 1", "-- end"]);
        let mut call = script.call(&["{a}:k".to_owned()]);
        call.arg("x").arg(b"\0\xff");
        let args = |cmd: &Cmd| -> Vec<Vec<u8>> {
            let args = cmd.args_iter();
            args.filter_map(|arg| match arg {
                Arg::Simple(arg) => Some(arg.to_vec()),
                _ => None,
            })
            .collect()
        };
        let (short, whole) = (args(&call), args(&script.whole(&call)));
        assert_eq!(short[0], b"EVALSHA");
        assert_eq!(whole[..2], [b"EVAL".to_vec(), script.source.into_bytes()]);
        assert_eq!(whole[2..], short[2..]);
        assert_eq!(whole[2], b"1");
    }
}
