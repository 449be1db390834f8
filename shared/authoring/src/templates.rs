//! The templates of `swirl new`: workflows to start with, each with a passing scenario, in DSL 1.0 and in edition 0.8.

use swirl_spec::edition::Edition;
use swirl_spec::vocabulary::is_label;

/// A template.
#[derive(Debug)]
pub struct Template {
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    tasks: Texts,
    states: Texts,
    /// The OpenAPI document of the service that it calls.
    service: Option<&'static str>,
}

/// The texts of an edition.
#[derive(Debug)]
struct Texts {
    definition: &'static str,
    scenario: &'static str,
}

/// The editions of templates, the default first.
pub const EDITIONS: [Edition; 2] = [Edition::V1_0, Edition::V0_8];

macro_rules! texts {
    ($edition:literal $name:literal) => {
        Texts {
            definition: include_str!(concat!("../templates/", $edition, "/", $name, ".sw.yaml")),
            scenario: include_str!(concat!(
                "../templates/",
                $edition,
                "/",
                $name,
                ".scenario.yaml"
            )),
        }
    };
}

macro_rules! service {
    ($name:literal calls) => {
        Some(include_str!(concat!(
            "../templates/",
            $name,
            ".service.yaml"
        )))
    };
    ($name:literal) => {
        None
    };
}

macro_rules! templates {
    ($($name:literal $($calls:ident)?: $summary:literal;)*) => {
        /// In the order in which they are listed.
        pub static TEMPLATES: &[Template] = &[$(Template {
            name: $name,
            summary: $summary,
            tasks: texts!("1.0" $name),
            states: texts!("0.8" $name),
            service: service!($name $($calls)?),
        }),*];
    };
}

templates! {
    "request-response" calls: "calls a service and returns its answer, with retries and a handled error";
    "saga" calls: "several steps that are undone, last first, when a later one fails";
    "approval" calls: "asks a person and waits for the answer, which is an event";
    "aggregation": "collects the events that belong together";
    "polling" calls: "starts a job and polls until it is done";
    "scheduled" calls: "does something each morning";
}

/// The name in the files is put in place of this.
const PLACEHOLDER: &str = "NAME";

/// The contents of the files.
#[derive(Debug)]
pub struct Files {
    pub definition: String,
    pub scenario: String,
    pub service: Option<String>,
}

/// The reason why a workflow can't be created from a template.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "'{0}' is not a valid id: use letters, digits, '-', '_' and '.', and begin with a letter or a digit"
    )]
    Name(String),
    #[error(
        "'{0}' is not a valid name in DSL 1.0: use at most 63 letters, digits and '-', without a '-' at either end"
    )]
    Label(String),
    #[error("it is not an OpenAPI document: {0}")]
    Document(String),
    #[error("it has no operation with an 'operationId'")]
    NoOperation,
}

impl Template {
    /// The files of a workflow with this id, or name in DSL 1.0. Editions other than DSL 1.0 have the text of 0.8.
    ///
    /// # Errors
    /// The text is not valid as an id and file name.
    pub fn files(&self, id: &str, edition: Edition) -> Result<Files, Error> {
        check_id(id, edition)?;
        let texts = match edition {
            Edition::V1_0 => &self.tasks,
            _ => &self.states,
        };
        Ok(Files {
            definition: texts.definition.replace(PLACEHOLDER, id),
            scenario: texts.scenario.replace(PLACEHOLDER, id),
            service: self.service.map(|text| text.replace(PLACEHOLDER, id)),
        })
    }
}

/// Checks a text that is to be an id and part of a file name.
pub(crate) fn check_id(id: &str, edition: Edition) -> Result<(), Error> {
    if edition == Edition::V1_0 {
        return match is_label(id) {
            true => Ok(()),
            false => Err(Error::Label(id.to_owned())),
        };
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(good)
        && id.len() <= 100
    {
        true => Ok(()),
        false => Err(Error::Name(id.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_documents::source::{Limits, parse};
    use swirl_spec::resource::MapResources;
    use swirl_spec::{Options, read};

    fn findings(files: &Files) -> Vec<String> {
        let mut resources = MapResources::default();
        if let Some(service) = &files.service {
            resources.insert("my-flow.service.yaml", service.as_bytes());
        }
        let reading = read(files.definition.as_bytes(), &resources, &Options::default());
        reading
            .diagnostics
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn each_template_is_valid_formatted_and_free_of_findings() {
        let all = TEMPLATES
            .iter()
            .flat_map(|template| EDITIONS.map(|edition| (template, edition)));
        for (template, edition) in all {
            let what = format!("{} {edition}", template.name);
            let files = template.files("my-flow", edition).unwrap();
            assert_eq!(findings(&files), [""; 0], "{what}");
            for text in [&files.definition, &files.scenario]
                .into_iter()
                .chain(&files.service)
            {
                assert!(!text.contains(PLACEHOLDER), "{what}");
                let formatted = crate::format::format(text.as_bytes()).unwrap();
                assert_eq!(&formatted, text, "{what}");
            }
            let root = parse(files.definition.as_bytes(), &Limits::default()).unwrap();
            let mut resources = MapResources::default();
            let mut documents = Vec::new();
            if let Some(service) = &files.service {
                resources.insert("my-flow.service.yaml", service.as_bytes());
                documents.push(("my-flow.service.yaml".to_owned(), service.clone()));
            }
            let text = files.definition.as_bytes();
            let reading = read(text, &resources, &Options::default());
            assert_eq!(reading.edition.map(|it| it.edition), Some(edition));
            let findings = crate::lint::lint(&reading.workflow.unwrap(), &root, &documents);
            assert!(findings.is_empty(), "{what}: {findings:?}");
        }
    }

    #[test]
    fn invalid_ids_are_rejected() {
        let template = &TEMPLATES[0];
        for name in ["", "a b", "-a", "../a", "a/b", "é", "a:b"] {
            for edition in EDITIONS {
                assert!(template.files(name, edition).is_err(), "{name}");
            }
        }
        assert!(template.files("order.v2_x-1", Edition::V0_8).is_ok());
        assert!(template.files("order-2", Edition::V1_0).is_ok());
        assert!(matches!(
            template.files("order.v2", Edition::V1_0),
            Err(Error::Label(_))
        ));
    }
}
