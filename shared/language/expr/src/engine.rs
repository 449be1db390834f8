//! jaq's setup: the data type that it runs on, and a single evaluation.

use jaq_core::data::HasLut;
use jaq_core::{Ctx, DataT, Exn, Lut, Vars};
use jaq_json::Val;
use swirl_model::Data;

use crate::meter::{self, Abort, Limits};
use crate::text;
use crate::value::{Error, V};

/// The data type that filters run on.
pub(crate) struct Jq;

impl DataT for Jq {
    type V<'a> = V;
    type Data<'a> = Terms<'a>;
}

/// The compiled terms. jaq fetches them at each of its steps, so this is the place where steps are counted.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a>(&'a Lut<Jq>);

impl<'a> HasLut<'a, Jq> for Terms<'a> {
    #[inline]
    fn lut(&self) -> &'a Lut<Jq> {
        meter::tick();
        self.0
    }
}

pub(crate) type Filter = jaq_core::Filter<Jq>;

/// The result of an evaluation.
pub(crate) enum Outcome {
    None,
    One(Val),
    Many,
    Error(String),
}

/// Evaluates the filter for at most one output.
pub(crate) fn one(
    filter: &Filter,
    input: &Data,
    vars: impl Fn() -> Vec<V>,
    limits: &Limits,
    now_ms: i64,
) -> Result<Outcome, Abort> {
    meter::run(limits, now_ms, || {
        let context = Ctx::new(Terms(&filter.lut), Vars::new(vars()));
        let mut outputs = filter.id.run::<Jq>((context, V::new(input.0.clone())));
        match outputs.next() {
            None => Outcome::None,
            Some(Err(exn)) => Outcome::Error(message(exn)),
            Some(Ok(output)) => match outputs.next() {
                None => Outcome::One(text::result(output.val, limits)),
                Some(Err(exn)) => Outcome::Error(message(exn)),
                Some(Ok(_)) => Outcome::Many,
            },
        }
    })
}

fn message(exn: Exn<'_, V>) -> String {
    const CHARS_MAX: usize = 2000;
    let Ok(error) = exn.get_err() else {
        return "break".to_owned();
    };
    let value = Error::into_val(error);
    let mut message = match value.as_str() {
        Some(message) => message.to_owned(),
        None => format!("{} (not a string)", text::shortened(&value.val)),
    };
    if let Some((at, _)) = message.char_indices().nth(CHARS_MAX) {
        message.truncate(at);
        message.push_str("...");
    }
    message
}
