//! Expressions and values: the variables of DSL 1.0 in place of the old ones.

use swirl_model::Data;
use swirl_model::workflow::{
    ExprId, ExprSource, Language, PathId, Period, Template, TextPart, Version,
};

use super::jq_text::{Piece, grouped, member, pieces, piped};
use super::writer::{Writer, marked, object};

impl Writer<'_> {
    pub fn period(&mut self, period: Period, data: &str) -> Data {
        match period {
            Period::Fixed(duration) => Data::string(duration.to_string()),
            Period::Expression(id) => {
                let text = self.expr(id, data);
                marked(&text)
            }
        }
    }

    pub fn timeout(&mut self, task: &mut Data, period: Option<Period>, data: &str) {
        if let Some(period) = period {
            let after = self.period(period, data);
            task.set("timeout", object([("after", after)]));
        }
    }

    /// An expression over the state data, which is at `data`.
    pub fn expr(&mut self, id: ExprId, data: &str) -> String {
        let source = self.workflow[id].clone();
        let text = self.text(&source);
        piped(data, &text)
    }

    pub fn path(&mut self, id: PathId) -> String {
        let source = self.workflow[id].clone();
        self.text(&source)
    }

    fn text(&mut self, source: &ExprSource) -> String {
        if source.language != Language::Jq {
            self.cannot(format!(
                "'{}' is not rewritten in jq: only paths to one value, '[*]' and simple filters of JSONPath are",
                source.text
            ));
        }
        self.renamed(source.text.trim())
    }

    /// The text with the variables of DSL 1.0.
    pub fn renamed(&mut self, text: &str) -> String {
        let mut new = String::with_capacity(text.len());
        let mut all = pieces(text).into_iter().peekable();
        while let Some(piece) = all.next() {
            let name = match piece {
                Piece::Variable(name) => name,
                Piece::Word(other) | Piece::Other(other) => {
                    new.push_str(other);
                    continue;
                }
            };
            let rest = match all.peek() {
                Some(Piece::Other(rest)) => *rest,
                _ => "",
            };
            let selected = member(rest);
            let taken = match name {
                "SECRETS" => {
                    new.push_str("$secrets");
                    0
                }
                "CONST" => self.constant(selected, &mut new),
                "WORKFLOW" => {
                    self.check_error(selected, rest);
                    self.about_workflow(selected, &mut new)
                }
                name => {
                    new.push('$');
                    new.push_str(name);
                    0
                }
            };
            if taken > 0 {
                all.next();
                new.push_str(&rest[taken..]);
            }
        }
        new
    }

    fn constant(&mut self, selected: Option<(&str, usize)>, new: &mut String) -> usize {
        let constants = &self.workflow.constants;
        let (value, length) = match selected {
            Some((key, length)) => (constants.get(key).unwrap_or_default(), length),
            None => (constants.clone(), 0),
        };
        self.note("constants are written where they are used");
        let is_simple = !value.is_object() && value.as_array().is_none();
        match is_simple {
            true => new.push_str(&value.to_string()),
            false => new.push_str(&format!("({value})")),
        }
        length
    }

    /// An error has other members in DSL 1.0.
    fn check_error(&mut self, selected: Option<(&str, usize)>, rest: &str) {
        let (key, length) = match selected {
            Some((key, length)) => (key, length),
            None => ("error", 0),
        };
        if key != "error" {
            return;
        }
        let of_error = member(&rest[length..]).map(|(key, _)| key);
        match of_error {
            Some("code" | "message" | "status" | "state" | "title" | "detail") => {}
            Some("name") => {
                let workflow = self.workflow;
                let mut actions = workflow.actions.iter();
                let mut branches = workflow.states.iter().flat_map(super::super::ways::branches);
                self.cannot_if(
                    actions.any(|action| action.timeout.is_some())
                        || branches.any(|branch| branch.timeout.is_some()),
                    "an expression reads the name of an error, and timeouts of all kinds have one type in DSL 1.0",
                );
            }
            _ => self.cannot(
                "an expression reads an error as a whole, or its type or place, which are others in DSL 1.0",
            ),
        }
    }

    fn about_workflow(&mut self, selected: Option<(&str, usize)>, new: &mut String) -> usize {
        let workflow = self.workflow;
        let version = match &workflow.version {
            Version::Literal(text) => text.as_str(),
            Version::Latest | Version::Expression(_) => Version::LATEST,
        };
        let name = workflow.name.as_deref();
        let start = workflow.flows.first().map(|flow| flow.start);
        let by_event = start.is_some_and(|id| self.starts_by_event(id));
        let of = |key: &str| {
            Some(match key {
                "id" => Data::string(workflow.id.as_str()).to_string(),
                "name" => name.map_or(Data::NULL, Data::string).to_string(),
                "version" => Data::string(version).to_string(),
                "instanceId" => "$workflow.id".to_owned(),
                "startedAt" => "$workflow.startedAt.iso8601".to_owned(),
                "input" if by_event => "{}".to_owned(),
                "input" => "$workflow.input".to_owned(),
                "error" => "$context.error".to_owned(),
                _ => return None,
            })
        };
        if let Some((key, length)) = selected {
            match of(key) {
                Some(text) => new.push_str(&text),
                None => {
                    self.cannot_if(
                        key == "key",
                        "an expression reads the instance's key; DSL 1.0 has no keys",
                    );
                    new.push_str("null");
                }
            }
            return length;
        }
        let keys = [
            "id",
            "name",
            "version",
            "instanceId",
            "startedAt",
            "input",
            "error",
        ];
        let members = keys
            .into_iter()
            .filter_map(|key| Some(format!("{key}: {}", of(key)?)));
        let members: Vec<String> = members.collect();
        new.push_str(&format!("({{{}}})", members.join(", ")));
        0
    }

    /// A value with expressions over the state data, which is at `data`.
    pub fn value(&mut self, template: &Template, data: &str) -> Data {
        match template {
            Template::Literal(value) => super::super::expressions::literal(value),
            Template::Expression(id) | Template::Loose(id, _) => {
                let text = self.expr(*id, data);
                marked(&text)
            }
            Template::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Text(plain) => {
                            text.push_str(&super::super::expressions::escaped(plain));
                        }
                        TextPart::Expression(id) => {
                            let part = self.expr(*id, data);
                            text.push_str(marked(&part).as_str().unwrap_or_default());
                        }
                    }
                }
                Data::string(text)
            }
            Template::Array(items) => {
                let items: Vec<Data> = items.iter().map(|item| self.value(item, data)).collect();
                Data::array(items)
            }
            Template::Object(members) => {
                let mut object = Data::object();
                for (key, value) in members {
                    object.set(key, self.value(value, data));
                }
                object
            }
        }
    }

    /// The same as an expression.
    pub fn value_text(&mut self, template: &Template, data: &str) -> String {
        match template {
            Template::Literal(value) => value.to_string(),
            Template::Expression(id) | Template::Loose(id, _) => self.expr(*id, data),
            Template::Text(parts) => {
                let mut texts = Vec::new();
                for part in parts {
                    texts.push(match part {
                        TextPart::Text(plain) => Data::string(plain.as_str()).to_string(),
                        TextPart::Expression(id) => {
                            let text = self.expr(*id, data);
                            format!("({text} | tostring)")
                        }
                    });
                }
                texts.join(" + ")
            }
            Template::Array(items) => {
                let mut texts = Vec::new();
                for item in items {
                    let text = self.value_text(item, data);
                    texts.push(grouped(&text));
                }
                format!("[{}]", texts.join(", "))
            }
            Template::Object(members) => {
                let mut texts = Vec::new();
                for (key, value) in members {
                    let text = self.value_text(value, data);
                    let key = Data::string(key.as_str());
                    texts.push(format!("{key}: {}", grouped(&text)));
                }
                format!("{{{}}}", texts.join(", "))
            }
        }
    }
}
