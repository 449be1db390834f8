//! The senders of requests.

use swirl_access::Role;

/// An authenticated sender, before authorization.
pub(super) struct Identity {
    pub name: String,
    pub roles: Vec<Role>,
    /// `None` allows all namespaces.
    pub namespaces: Option<Vec<String>>,
}

/// The sender of a request, once authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// A name for messages: the token's name, or the provider's subject.
    pub name: String,
    pub roles: Vec<Role>,
}
