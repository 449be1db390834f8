//! The jq expression with which an operator changes the state data of a faulted instance.

use swirl_expr::{Env, Program};
use swirl_model::Data;
use swirl_model::time::Timestamp;

use crate::Limits;

/// A jq expression from state data to state data. It sees nothing else: no variables, and no secrets.
pub struct Patch(Program);

impl Patch {
    /// # Errors
    /// It isn't jq, or uses a variable; the text says which and where.
    pub fn compile(source: &str) -> Result<Patch, String> {
        Program::jq(source, &[])
            .map(Patch)
            .map_err(|error| error.to_string())
    }

    /// # Errors
    /// It fails on this data, has no result or several; the text is a full sentence.
    pub fn apply(&self, data: &Data, limits: Limits, now: Timestamp) -> Result<Data, String> {
        let env = Env {
            now_ms: now.0,
            limits,
        };
        match self.0.one(data, &[], &env) {
            Ok(Some(data)) => Ok(data),
            Ok(None) => Err("the patch has no result for its data".to_owned()),
            Err(error) => Err(format!("the patch fails on its data: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(source: &str, data: &str) -> Result<String, String> {
        let data = Data::parse(data.as_bytes()).unwrap();
        let patch = Patch::compile(source)?;
        let patched = patch.apply(&data, Limits::default(), Timestamp(0))?;
        Ok(patched.to_text())
    }

    #[test]
    fn it_sees_the_data_and_gives_one_value() {
        assert_eq!(
            patched(".amount = 7", r#"{"amount":0}"#).unwrap(),
            r#"{"amount":7}"#
        );
        for (source, says) in [
            ("$SECRETS.key", "SECRETS"),
            (".amount =", ""),
            ("empty", "no result"),
            (".[]", "fails"),
            (".amount + \"x\"", "fails"),
        ] {
            let refusal = patched(source, r#"{"amount":0,"b":1}"#).unwrap_err();
            assert!(refusal.contains(says), "{source}: {refusal}");
        }
    }
}
