//! The table of all settings, in the order of the reference page. Each file has a group of sections.

mod api;
mod processes;
mod servers;

use super::setting::Setting;

/// All settings.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    [
        servers::SETTINGS,
        processes::SETTINGS,
        api::SETTINGS,
        processes::COMMON,
    ]
    .into_iter()
    .flatten()
}

/// The setting with this key.
pub fn find(key: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.key == key)
}

/// The description of a section, for the reference page and the default file.
pub fn section(name: &str) -> &'static str {
    match name {
        "redis" => "Redis keeps all records: records that it loses are lost.",
        "nats" => "NATS with JetStream transports tasks and events.",
        "events" => "The subjects of received and produced CloudEvents.",
        "worker" => "`swirl worker`.",
        "history" => "Contents of the history of instances.",
        "lifecycle" => "Lifecycle events of instances and states; see lifecycle.md.",
        "coordinator" => "`swirl coordinator`.",
        "api" => "The addresses of the HTTP API and the console.",
        "auth" => "Access to the HTTP API; see security.md.",
        "auth.oidc" => "Tokens (JWT) of an OpenID Connect provider.",
        "limits" => "How much a workflow may use.",
        "telemetry" => "Traces and metrics over OTLP.",
        "log" => "Messages of the processes, on standard error.",
        "http" => "Function calls and document downloads over HTTP.",
        "functions" => "The operator's settings for function types; see functions/README.md.",
        "secrets" => {
            "The sources of `$SECRETS`, searched in this order. A coordinator needs them for `authRef.resource`."
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kind::Raw;

    #[test]
    fn names_are_unique_in_all_three_places() {
        let all = settings().count();
        assert!(all > 60);
        for name in [
            settings()
                .map(|s| s.key.to_owned())
                .collect::<BTreeSet<_>>(),
            settings().map(Setting::variable).collect(),
            settings().map(Setting::flag).collect(),
        ] {
            assert_eq!(name.len(), all);
        }
        let url = find("redis.url").unwrap();
        assert_eq!(url.variable(), "SWIRL_REDIS_URL");
        assert_eq!(url.flag(), "redis-url");
    }

    #[test]
    fn defaults_are_valid() {
        for setting in settings() {
            if let Some(default) = setting.default {
                let checked = setting.kind.check(&Raw::Text(default.to_owned()));
                assert!(checked.is_ok(), "{}: {checked:?}", setting.key);
            }
        }
    }

    #[test]
    fn every_row_is_explained() {
        for setting in settings() {
            assert!(setting.help.ends_with('.'), "{}", setting.key);
            let section = setting.section();
            assert!(
                section.is_empty() || !super::section(section).is_empty(),
                "{section}"
            );
        }
    }
}
