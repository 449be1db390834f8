//! Scripts, called by their hashes. A server that doesn't know a script (it was restarted, another
//! one took over) is sent the whole of it once.

use std::sync::LazyLock;

use redis::{Arg, Cmd, ErrorKind, FromRedisValue, ServerErrorKind, ToRedisArgs};
use swirl_ports::Result;

use crate::Redis;
use crate::connect::damaged;

/// What every script of an instance begins with.
pub(crate) const PRELUDE: &str = include_str!("lua/prelude.lua");

pub(crate) struct Script {
    source: String,
    hash: String,
}

impl Script {
    /// The parts, one after another.
    pub fn new(parts: &[&str]) -> Script {
        let source = parts.join("\n");
        let hash = redis::Script::new(&source).get_hash().to_owned();
        Script { source, hash }
    }

    /// A script of an instance.
    pub fn of_instance(parts: &[&str]) -> Script {
        let mut all = vec![PRELUDE];
        all.extend(parts);
        Script::new(&all)
    }

    pub fn call(&self, keys: &[String]) -> Cmd {
        let mut cmd = Cmd::new();
        cmd.arg("EVALSHA").arg(&self.hash).arg(keys.len()).arg(keys);
        cmd
    }

    /// The same call with the whole script.
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
}

/// A script as a `static`.
pub(crate) type Lazy = LazyLock<Script>;

impl Redis {
    /// Carries out a call that [`Script::call`] began. All keys must share one hash tag.
    pub(crate) async fn run<T: FromRedisValue>(&self, script: &Script, call: Cmd) -> Result<T> {
        let no_script = ErrorKind::Server(ServerErrorKind::NoScript);
        let value = match self.send(&call).await {
            Err(error) if error.kind() == no_script => self.send(&script.whole(&call)).await,
            other => other,
        };
        let value = value.map_err(crate::connect::error)?;
        T::from_redis_value(value).map_err(|error| damaged("the answer of a script", error))
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

    /// Carries out one command.
    pub(crate) async fn query<T: FromRedisValue>(&self, cmd: Cmd) -> Result<T> {
        let value = self.send(&cmd).await.map_err(crate::connect::error)?;
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
