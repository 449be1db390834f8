//! Retry policies without a delay: a service that is down would get all attempts within a second.

use swirl_documents::source::Node;

use super::{RETRY_WITHOUT_DELAY, Subject};

/// Properties that delay the next attempt, in all editions.
const DELAYS: [&str; 4] = ["delay", "interval", "increment", "retry-interval"];

pub fn check(subject: &mut Subject<'_>) {
    let root = subject.root;
    lists(root, is_of_tasks(root), subject);
}

/// In DSL 1.0, retry policies have names as keys, and durations may be objects.
fn is_of_tasks(root: &Node) -> bool {
    root.get("document").is_some()
}

fn lists(node: &Node, of_tasks: bool, subject: &mut Subject<'_>) {
    for item in node.items().unwrap_or_default() {
        lists(item, of_tasks, subject);
    }
    for member in node.members().unwrap_or_default() {
        // In user data, a property with this name is not a retry policy.
        if matches!(
            member.key(),
            "data" | "metadata" | "constants" | "arguments" | "parameters" | "set" | "body"
        ) {
            continue;
        }
        if of_tasks && member.key() == "retries" {
            for named in member.value().members().unwrap_or_default() {
                of_policy(named.value(), Some(named.key()), subject);
            }
        } else if matches!(member.key(), "retries" | "retry") {
            // In the drafts of 0.1, an action has a single one.
            let one = std::slice::from_ref(member.value());
            for policy in member.value().items().unwrap_or(one) {
                let name = policy.get("name").and_then(Node::as_str);
                of_policy(policy, name, subject);
            }
        }
        lists(member.value(), of_tasks, subject);
    }
}

fn of_policy(policy: &Node, name: Option<&str>, subject: &mut Subject<'_>) {
    let attempts = ["maxAttempts", "max-attempts", "max-retry"];
    let attempts = attempts.iter().find_map(|key| policy.get(key));
    // The drafts of 0.1 retry only as often as stated.
    let is_of_draft = policy.get("match").is_some();
    let none = attempts.map_or(is_of_draft, |node| matches!(node.raw(), "0" | "1"));
    if policy.members().is_none()
        || none
        || DELAYS
            .iter()
            .any(|key| policy.get(key).is_some_and(is_some_time))
    {
        return;
    }
    // 'endless-retry' says it of a policy without any limit.
    if is_of_tasks(subject.root) && policy.get("limit").is_none() {
        return;
    }
    let policy_name = name.map_or_else(
        || "a retry policy".to_owned(),
        |name| format!("the retry policy '{name}'"),
    );
    let message = format!("{policy_name} has no delay: all its attempts follow each other at once");
    let hint = match is_of_draft {
        true => "add a 'retry-interval'",
        false if is_of_tasks(subject.root) => {
            "add a 'delay', and a 'backoff' for services that are down for longer"
        }
        false => "add a 'delay', and a 'multiplier' for services that are down for longer",
    };
    subject.found(&RETRY_WITHOUT_DELAY, policy, message, hint);
}

/// A length of time other than zero.
fn is_some_time(node: &Node) -> bool {
    if let Some(parts) = node.members() {
        return parts.iter().any(|part| is_some_time(part.value()));
    }
    let zero = |text: &str| text.chars().all(|c| !c.is_ascii_digit() || c == '0');
    match node.as_str() {
        // The length follows after `R5/`.
        Some(text) => text.contains("${") || !zero(text.rsplit('/').next().unwrap_or(text)),
        None => node.as_f64().is_some_and(|seconds| seconds > 0.0),
    }
}
