//! Roles, and their permissions.

use std::fmt;
use std::str::FromStr;

/// The permission that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Open to everybody, also without a token.
    Nothing,
    /// Looks at definitions and instances.
    Read,
    /// Starts instances, sends events: frequent requests of applications.
    Start,
    /// Changes running instances, by hand: cancels, suspends, retries.
    Operate,
    /// Deploys code: a definition calls functions and uses secrets.
    Deploy,
}

/// | role | reads | starts, operates | deploys |
/// | --- | --- | --- | --- |
/// | viewer | yes | | |
/// | operator | yes | yes | |
/// | deployer | yes | | yes |
/// | admin | yes | yes | yes |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Viewer,
    Operator,
    Deployer,
    Admin,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no role '{0}'; they are viewer, operator, deployer and admin")]
pub struct UnknownRole(pub String);

impl Role {
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Deployer, Role::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Deployer => "deployer",
            Role::Admin => "admin",
        }
    }

    pub fn may(self, need: Need) -> bool {
        match need {
            Need::Nothing | Need::Read => true,
            Need::Start | Need::Operate => matches!(self, Role::Operator | Role::Admin),
            Need::Deploy => matches!(self, Role::Deployer | Role::Admin),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Role, UnknownRole> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| UnknownRole(text.chars().take(60).collect()))
    }
}

impl Need {
    /// The role with the fewest rights that is sufficient; `None` if everybody has access.
    pub fn role(self) -> Option<Role> {
        match self {
            Need::Nothing => None,
            Need::Read => Some(Role::Viewer),
            Need::Start | Need::Operate => Some(Role::Operator),
            Need::Deploy => Some(Role::Deployer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds() {
        use Need::{Deploy, Operate, Read, Start};
        for (role, allowed) in [
            (Role::Viewer, vec![Read]),
            (Role::Operator, vec![Read, Start, Operate]),
            (Role::Deployer, vec![Read, Deploy]),
            (Role::Admin, vec![Read, Start, Operate, Deploy]),
        ] {
            for need in [Read, Start, Operate, Deploy] {
                assert_eq!(role.may(need), allowed.contains(&need), "{role} {need:?}");
            }
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        for need in [Read, Start, Operate, Deploy] {
            assert!(need.role().is_some_and(|role| role.may(need)));
        }
        assert!("Admin".parse::<Role>().is_err() && "".parse::<Role>().is_err());
    }
}
