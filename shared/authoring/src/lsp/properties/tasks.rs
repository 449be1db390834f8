//! The properties of DSL 1.0, each with a one-sentence description.

/// In alphabetical order. If a property has different meanings in different objects, its description says so.
const ABOUT: [(&str, &str); 109] = [
    (
        "after",
        "of a timeout: how long it takes; of a schedule: how long after the end of an instance the next one starts",
    ),
    ("all", "waits for one event of each filter, in any order"),
    ("amount", "of a subscription: how many messages are taken"),
    ("any", "waits for an event of any of the filters"),
    ("arguments", "what the process is called with"),
    (
        "as",
        "an expression for the data that goes on: the output, or the exported context; in `catch` the name of the variable with the error",
    ),
    (
        "at",
        "the name of the variable with the index, `index` by default",
    ),
    (
        "attempt",
        "of a retry's limit: how many retries there may be (`count`), and how long each attempt may take (`duration`)",
    ),
    (
        "authentication",
        "how the call authenticates itself: an authentication, or `use` with the name of one",
    ),
    (
        "authentications",
        "authentications that calls refer to by name",
    ),
    (
        "await",
        "whether the task waits for the end (true, the default)",
    ),
    (
        "backoff",
        "how the time between retries grows: `constant`, `linear` or `exponential`",
    ),
    ("basic", "authentication by user name and password"),
    ("bearer", "authentication by a token"),
    (
        "before",
        "of an extension: the tasks that run before the extended task",
    ),
    ("body", "what is sent"),
    ("branches", "the tasks that run at the same time"),
    (
        "call",
        "calls a service (`http`, `openapi`, `grpc`, `asyncapi`, `a2a`, `mcp`) or a function, by name",
    ),
    ("catalogs", "where functions of `NAME:VERSION@CATALOG` are"),
    (
        "catch",
        "which errors of the `try` are caught, how often it is retried, and what is done then",
    ),
    (
        "channel",
        "the channel of the AsyncAPI document, before its version 3",
    ),
    (
        "compete",
        "whether the first branch that completes decides (true), and the others are cancelled",
    ),
    (
        "consume",
        "when a subscription has enough messages: an `amount`, a time (`for`), or a condition (`while`, `until`)",
    ),
    (
        "correlate",
        "by which values events belong together or to this instance",
    ),
    ("count", "how many retries there may be"),
    (
        "cron",
        "the times at which instances start, as a cron expression in UTC",
    ),
    (
        "data",
        "of an event: its payload, or the condition that it must fit",
    ),
    ("delay", "the time before a retry"),
    ("digest", "authentication by a challenge of the server"),
    ("do", "the tasks that run, one after another"),
    (
        "document",
        "what the workflow is: `dsl`, `namespace`, `name`, `version`; of a call: the document of the service",
    ),
    ("dsl", "the version of the language, such as `1.0.3`"),
    ("duration", "how long it may take"),
    (
        "each",
        "the name of the variable with the item of an iteration, `item` by default",
    ),
    ("emit", "produces an event"),
    (
        "endpoint",
        "the address, or an object with `uri` and `authentication`",
    ),
    (
        "error",
        "the error that is raised: its name in `use.errors`, or the error itself",
    ),
    (
        "errors",
        "in `use` the errors that tasks raise by name; in `catch` those that are caught",
    ),
    (
        "evaluate",
        "how expressions are written: `strict`, in `${ }`, or `loose`",
    ),
    ("every", "the time between the starts of instances"),
    (
        "exceptWhen",
        "an expression; if it is true, the error isn't caught or retried",
    ),
    (
        "expect",
        "an expression for the value that the event must have",
    ),
    ("export", "what becomes the context, `$context`"),
    (
        "extend",
        "the kind of tasks that the extension extends, or `all`",
    ),
    ("extensions", "tasks that run before and after others"),
    (
        "filter",
        "an expression: which messages a subscription takes",
    ),
    ("for", "runs the tasks in `do` for each item of a list"),
    ("foreach", "what is done with each event that is consumed"),
    ("fork", "runs branches at the same time"),
    (
        "from",
        "an expression for the data that is used: the input, or the value of a correlation",
    ),
    ("functions", "tasks that others call by name"),
    ("headers", "the headers that are sent"),
    ("if", "an expression; if it isn't true, the task is skipped"),
    ("in", "an expression for the list to iterate over"),
    (
        "input",
        "what the task or the workflow gets (`from`), and its `schema`",
    ),
    (
        "item",
        "the name of the variable with the event, `item` by default",
    ),
    (
        "jitter",
        "a random time that is added to the delay, between `from` and `to`",
    ),
    ("limit", "how often, and how long, retries are made"),
    ("listen", "waits for events"),
    (
        "message",
        "the message that is sent: its `payload` and its `headers`",
    ),
    (
        "metadata",
        "your own data; in the document, `swirl` has what the runtime reads",
    ),
    ("method", "the HTTP method, or the method that is called"),
    (
        "mode",
        "whether expressions are in `${ }` (`strict`, the default), or each text may be one (`loose`)",
    ),
    (
        "name",
        "the name of the workflow; of another object its own",
    ),
    ("namespace", "the first part of the definition's id"),
    ("oauth2", "authentication by a token of an OAuth 2 server"),
    (
        "oidc",
        "authentication by a token of an OpenID Connect server",
    ),
    ("on", "the events that start instances"),
    ("one", "waits for one event that fits the filter"),
    ("operation", "the operation of the AsyncAPI document"),
    ("operationId", "the operation of the OpenAPI document"),
    (
        "output",
        "what the task or the workflow gives (`as`), and its `schema`; of a call: `content`, `raw` or `response`",
    ),
    ("parameters", "what the operation is called with, by name"),
    ("payload", "the content of the message"),
    (
        "protocol",
        "the protocol of the servers that come into question, such as `kafka`",
    ),
    ("query", "the parameters in the query of the address"),
    ("raise", "raises an error"),
    (
        "read",
        "what of an event is read: its `data`, the whole `envelope`, or the `raw` payload",
    ),
    (
        "redirect",
        "whether redirects are followed, and count as success",
    ),
    ("retries", "retry policies that `catch` refers to by name"),
    (
        "retry",
        "a retry policy, or the name of one in `use.retries`",
    ),
    (
        "run",
        "runs a workflow, a script, a shell command or a container",
    ),
    ("schedule", "when instances start by themselves"),
    ("schema", "what the data must fit, a JSON Schema"),
    (
        "search",
        "in `metadata.swirl`: the values that instances are found by, each with `value` (an expression) and `type`",
    ),
    (
        "secrets",
        "names of secrets that expressions read as `$secrets`",
    ),
    (
        "server",
        "the server of the AsyncAPI document: its `name`, and values for its `variables`",
    ),
    ("set", "replaces the data"),
    ("status", "the HTTP status of the error"),
    (
        "subscription",
        "the messages that are taken, and what is done with each",
    ),
    ("summary", "what the workflow does, in Markdown"),
    (
        "swirl",
        "in the document's `metadata`: what the runtime reads, which is `search`, `retention` and `history`",
    ),
    ("switch", "takes the way of the first case that holds"),
    ("tags", "texts by which people find the document"),
    (
        "then",
        "the task of the same list that follows, or `continue`, `exit` (ends the list) or `end` (ends the workflow)",
    ),
    (
        "timeout",
        "how long it may take: `after`, or the name of a timeout in `use.timeouts`",
    ),
    ("timeouts", "timeouts that tasks refer to by name"),
    ("title", "the title of the workflow or of the error"),
    (
        "to",
        "the events that are waited for: `one`, `any` or `all`",
    ),
    ("try", "the tasks whose errors `catch` handles"),
    (
        "type",
        "the kind of the event or of the error, usually a URI",
    ),
    (
        "until",
        "what ends the wait: a condition over the events, or events of their own",
    ),
    (
        "uri",
        "the address; `{name}` stands for a member of the task's input",
    ),
    (
        "use",
        "what tasks refer to by name; of an authentication: its name or that of a secret",
    ),
    (
        "variables",
        "values for the variables in the server's address",
    ),
    ("version", "the version of the definition, such as `1.0.0`"),
    ("wait", "waits for a duration"),
    (
        "when",
        "an expression: the case holds, or the error is caught, if it is true",
    ),
    (
        "while",
        "an expression; the loop goes on as long as it is true",
    ),
];

pub fn about(name: &str) -> Option<&'static str> {
    let found = ABOUT
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    Some(ABOUT[found].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(ABOUT.is_sorted_by_key(|(name, _)| *name));
    }
}
