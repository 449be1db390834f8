//! Names of things at run time. Each is derived from its cause, never random, so a step that is
//! repeated after a crash uses the same names again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> $name {
                $name(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

name! {
    /// One run of one definition version.
    InstanceId;
    /// A path of execution within an instance: `r` is the root path, `r.3.1` the second branch (1)
    /// of the fork that the root path made at its sequence number 3.
    ScopeId;
}

impl ScopeId {
    pub fn root() -> ScopeId {
        ScopeId::new("r")
    }

    pub fn is_root(&self) -> bool {
        !self.0.contains('.')
    }

    pub fn child(&self, fork: u32, index: u32) -> ScopeId {
        ScopeId::new(format!("{}.{fork}.{index}", self.0))
    }

    /// The scope that forked this one, the fork, and the place of this scope in it.
    pub fn origin(&self) -> Option<(ScopeId, u32, u32)> {
        let (rest, index) = self.0.rsplit_once('.')?;
        let (parent, fork) = rest.rsplit_once('.')?;
        Some((
            ScopeId::new(parent),
            fork.parse().ok()?,
            index.parse().ok()?,
        ))
    }
}

/// A scope of an instance: tasks refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopeRef {
    pub instance: InstanceId,
    pub scope: ScopeId,
}

impl ScopeRef {
    pub fn root(instance: InstanceId) -> ScopeRef {
        ScopeRef {
            instance,
            scope: ScopeId::root(),
        }
    }
}

impl fmt::Display for ScopeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.instance, self.scope)
    }
}

/// A definition as instances are pinned to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DefinitionId {
    pub workflow: Arc<str>,
    pub version: Arc<str>,
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.version.is_empty() {
            f.write_str(&self.workflow)
        } else {
            write!(f, "{}:{}", self.workflow, self.version)
        }
    }
}
