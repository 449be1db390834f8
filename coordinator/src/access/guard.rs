//! Authorization of each request: may its sender do this?

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use swirl_console::Provider;
use swirl_model::time::Timestamp;

use super::denied::Denied;
use super::identity::{Caller, Identity};
use super::oidc::Oidc;
use super::refusals::{REFUSED_MAX, Refusals};
use super::tokens::Tokens;
use swirl_access::{Need, Role};

/// How often the file of tokens is read again.
const READ_EVERY: Duration = Duration::from_secs(5);
/// The longest token, in bytes: tokens of providers can be large.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Access to the API: authentication and authorization.
pub struct Access {
    namespace: String,
    /// `None`: anyone who can reach the port may do everything.
    guard: Option<Guard>,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender {
    /// The address, if it is known.
    pub peer: Option<IpAddr>,
    /// A session of the console sends the request.
    pub is_console: bool,
}

struct Guard {
    tokens: Arc<Tokens>,
    oidc: Option<Arc<Oidc>>,
    refusals: Refusals,
}

impl Access {
    /// Allows everybody to do everything.
    pub fn open(namespace: impl Into<String>) -> Access {
        Access {
            namespace: namespace.into(),
            guard: None,
        }
    }

    pub fn guarded(namespace: impl Into<String>, tokens: Tokens, oidc: Option<Oidc>) -> Access {
        let tokens = Arc::new(tokens);
        Access {
            namespace: namespace.into(),
            guard: Some(Guard {
                tokens,
                oidc: oidc.map(Arc::new),
                refusals: Refusals::new(REFUSED_MAX),
            }),
        }
    }

    /// Limits the number of refused tokens that an address may send at once; 0 means no limit.
    #[must_use]
    pub fn refused_max(mut self, max: u32) -> Access {
        if let Some(guard) = &mut self.guard {
            guard.refusals = Refusals::new(max);
        }
        self
    }

    /// Whether everybody may do everything.
    pub fn is_open(&self) -> bool {
        self.guard.is_none()
    }

    /// The provider at which visitors of the console sign in.
    pub(crate) fn provider(&self) -> Option<Arc<dyn Provider>> {
        let oidc = self.guard.as_ref()?.oidc.as_ref()?;
        Some(Arc::new(oidc.client()?))
    }

    /// The namespace that this server serves.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Checks a request. `authorization` is the header of this name, if there is one.
    ///
    /// # Errors
    /// The sender may not do this.
    pub async fn authorize(
        &self,
        authorization: Option<&[u8]>,
        need: Need,
        sender: Sender,
    ) -> Result<Caller, Denied> {
        let Some(guard) = self.guard.as_ref().filter(|_| need != Need::Nothing) else {
            return Ok(Caller {
                name: "anybody".to_owned(),
                roles: Vec::new(),
            });
        };
        let identity = guard.identify(authorization, sender).await?;
        if let Some(namespaces) = &identity.namespaces
            && !namespaces.contains(&self.namespace)
        {
            return Err(Denied::Namespace {
                name: identity.name,
                namespace: self.namespace.clone(),
            });
        }
        match need.role() {
            Some(role) if !identity.roles.iter().any(|role| role.may(need)) => Err(Denied::Role {
                role,
                has: words(&identity.roles),
                name: identity.name,
            }),
            _ => Ok(Caller {
                name: identity.name,
                roles: identity.roles,
            }),
        }
    }

    /// Keeps the tokens of a file and the keys of a provider up to date. Never returns.
    pub async fn keep(&self) {
        let Some(guard) = &self.guard else {
            return std::future::pending().await;
        };
        tokio::join!(keep_tokens(&guard.tokens), async {
            match &guard.oidc {
                Some(oidc) => oidc.keep().await,
                None => std::future::pending().await,
            }
        });
    }
}

impl Guard {
    /// Counts refusals. After too many, tokens of the address are refused without a full check.
    async fn identify(
        &self,
        authorization: Option<&[u8]>,
        sender: Sender,
    ) -> Result<Identity, Denied> {
        let (now, peer) = (Instant::now(), sender.peer);
        let wait = peer.and_then(|peer| self.refusals.wait(peer, now));
        let found = match bearer(authorization) {
            Ok(token) => self.look_up(token, wait, sender.is_console).await,
            Err(denied) => Err(denied),
        };
        match (found, wait, peer) {
            (Err(Denied::Invalid(_)), Some(wait), _) => Err(Denied::TooMany(in_seconds(wait))),
            (Err(denied @ Denied::Invalid(_)), None, Some(peer)) => {
                self.refusals.count(peer, now);
                Err(denied)
            }
            (found, ..) => found,
        }
    }

    async fn look_up(
        &self,
        token: &str,
        wait: Option<Duration>,
        is_console: bool,
    ) -> Result<Identity, Denied> {
        if let Some(found) = self.tokens.find(token) {
            if found.expires.is_some_and(|at| at <= now()) {
                return Err(Denied::Invalid("it has expired".to_owned()));
            }
            return Ok(Identity {
                name: found.name,
                roles: found.roles,
                namespaces: Some(found.namespaces).filter(|names| !names.is_empty()),
            });
        }
        match &self.oidc {
            Some(oidc) if token.split('.').count() == 3 => {
                if let Some(wait) = wait.filter(|_| !self.refusals.is_known(token)) {
                    return Err(Denied::TooMany(in_seconds(wait)));
                }
                let found = oidc.identify(token, is_console).await;
                if found.is_ok() {
                    self.refusals.was_good(token);
                }
                found
            }
            _ => Err(Denied::Invalid("it is unknown".to_owned())),
        }
    }
}

fn bearer(authorization: Option<&[u8]>) -> Result<&str, Denied> {
    let Some(header) = authorization else {
        return Err(Denied::Missing);
    };
    let invalid = |reason: &str| Denied::Invalid(reason.to_owned());
    if header.len() > TOKEN_BYTES_MAX {
        return Err(invalid("it is too long"));
    }
    let header = std::str::from_utf8(header).map_err(|_| invalid("it is not UTF-8 text"))?;
    let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(invalid("the header must be 'Authorization: Bearer TOKEN'"));
    }
    Ok(token)
}

/// Whole seconds, rounded up.
fn in_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + 1)
}

fn words(roles: &[Role]) -> String {
    if roles.is_empty() {
        return "none".to_owned();
    }
    let words: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    words.join(", ")
}

/// Reads the clock of this machine, since tokens have wall-clock times.
fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = now.map_or(0, |now| now.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

async fn keep_tokens(tokens: &Arc<Tokens>) {
    if !tokens.has_file() {
        return std::future::pending().await;
    }
    let mut logged = None;
    loop {
        tokio::time::sleep(READ_EVERY).await;
        let tokens = tokens.clone();
        let read = tokio::task::spawn_blocking(move || tokens.read_again()).await;
        match read.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(changed) => {
                logged = None;
                if changed {
                    tracing::info!("the file of tokens has changed and was read again");
                }
            }
            // Logged once, not every few seconds.
            Err(error) if logged.as_ref() != Some(&error) => {
                tracing::error!(%error, "the file of tokens cannot be used; its previous tokens stay valid");
                logged = Some(error);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_access::{Token, TokenEntry, hash};

    fn access(entries: &[(&str, &str, &[&str], Option<&str>)]) -> Access {
        let entries: Vec<TokenEntry> = entries
            .iter()
            .map(|(name, role, namespaces, expires)| TokenEntry {
                name: (*name).to_owned(),
                hash: hash(&format!("{name}-secret")),
                roles: vec![(*role).to_owned()],
                namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
                expires: expires.map(str::to_owned),
            })
            .collect();
        let tokens = Tokens::new(Token::all(&entries).unwrap(), None).unwrap();
        Access::guarded("shop", tokens, None)
    }

    #[tokio::test]
    async fn a_token_opens_what_its_role_allows() {
        let access = access(&[
            ("see", "viewer", &[], None),
            ("here", "admin", &["shop"], Some("2999-01-01T00:00:00Z")),
            ("elsewhere", "admin", &["bank"], None),
            ("late", "admin", &[], Some("2020-01-01T00:00:00Z")),
        ]);
        let ask = async |header: &str, need| {
            let header = Some(header.as_bytes());
            access.authorize(header, need, Sender::default()).await
        };
        let seen = ask("Bearer see-secret", Need::Read).await.unwrap();
        assert_eq!(
            (seen.name.as_str(), seen.roles),
            ("see", vec![Role::Viewer])
        );
        assert!(ask("bearer  see-secret ", Need::Read).await.is_ok());
        assert!(ask("Bearer here-secret", Need::Deploy).await.is_ok());

        let refused = ask("Bearer see-secret", Need::Operate).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "this needs the role operator, but 'see' has viewer"
        );
        let refused = ask("Bearer elsewhere-secret", Need::Read).await;
        assert!(matches!(refused, Err(Denied::Namespace { .. })));
        for header in [
            "Bearer late-secret",
            "Bearer see-secre",
            "Bearer see-secrets",
            "Bearer ",
            "Bearer",
            "Basic see-secret",
            "see-secret",
            "Bearer a.b.c",
        ] {
            let refused = ask(header, Need::Read).await;
            assert!(matches!(refused, Err(Denied::Invalid(_))), "{header}");
        }
        let missing = access.authorize(None, Need::Read, Sender::default()).await;
        assert_eq!(missing, Err(Denied::Missing));
        let free = access.authorize(None, Need::Nothing, Sender::default());
        assert!(free.await.is_ok());
        let long = format!("Bearer {}", "x".repeat(TOKEN_BYTES_MAX));
        assert!(ask(&long, Need::Read).await.is_err());
    }

    #[tokio::test]
    async fn an_address_with_too_many_wrong_tokens_waits_alone() {
        let access = access(&[("see", "viewer", &[], None)]).refused_max(3);
        let ask = async |header: &str, peer: &str| {
            let peer = Some(peer.parse().unwrap());
            let header = Some(header.as_bytes());
            let sender = Sender {
                peer,
                is_console: false,
            };
            access.authorize(header, Need::Read, sender).await
        };
        let wrong = ["Bearer x", "Bearer a.b.c", "Basic see-secret"];
        for header in wrong {
            let refused = ask(header, "10.0.0.1").await;
            assert!(matches!(refused, Err(Denied::Invalid(_))), "{header}");
        }
        for header in wrong {
            let refused = ask(header, "10.0.0.1").await;
            assert!(matches!(refused, Err(Denied::TooMany(_))), "{header}");
        }
        let elsewhere = ask("Bearer x", "10.0.0.2").await;
        assert!(matches!(elsewhere, Err(Denied::Invalid(_))));
        // This holds even if it shares the address.
        assert!(ask("Bearer see-secret", "10.0.0.1").await.is_ok());
        assert!(ask("Bearer see-secret", "10.0.0.2").await.is_ok());
    }

    #[tokio::test]
    async fn open_access_allows_everything() {
        let open = Access::open("default");
        let any = open.authorize(None, Need::Deploy, Sender::default());
        assert!(any.await.is_ok());
        assert!(
            open.authorize(Some(b"Basic x"), Need::Deploy, Sender::default())
                .await
                .is_ok()
        );
    }
}
