//! More workflows of other editions for [`crate::editions`]: states that are retried as a whole, conditions over
//! errors, parts of errors that are merged into the data, schemas that only warn, conditions with `not`.

use crate::random::Random;

/// Conditions over the error of a function and over that of a timeout, in each of the languages.
const BAD: [&str; 7] = [
    "{language: spel, body: \"name eq 'bad'\"}",
    "{language: spel, body: \"not (code == 'timeout')\"}",
    "{language: jexl, body: \"name == 'bad' && message =^ 'it'\"}",
    "{language: cel, body: \"code == 'bad' && message.startsWith('it failed')\"}",
    "{language: jq, body: \".error.name == \\\"bad\\\"\"}",
    "{language: jsonpath, body: \"$.error[?(@.name == 'bad')]\"}",
    "{language: cel, body: \"trace == 'bad: it failed'\"}",
];
const LATE: [&str; 3] = [
    "{language: spel, body: \"name eq 'ActionTimeout'\"}",
    "{language: jexl, body: \"!(code == 'bad')\"}",
    "{language: jq, body: \"(.error.name == \\\"bad\\\") | not\"}",
];
/// Conditions over data alone, which are evaluated for results too.
const DATA: [&str; 3] = [
    "{language: spel, body: \"$.n lt 5\"}",
    "{language: jq, body: \"$data.n > 3\"}",
    "{language: jsonpath, body: \"$[?(@.n > 6)]\"}",
];

fn one_of<'a>(random: &mut Random, all: &[&'a str]) -> &'a str {
    all[random.below(all.len())]
}

/// A schema that `n` and `absent` may violate.
fn schema(random: &mut Random) -> &'static str {
    let all = [
        "{schema: {type: object, required: [absent]}}",
        "{schema: {type: object, properties: {n: {type: number, maximum: 4}}}}",
        "{schema: {type: object, properties: {n: {type: string}}, required: [n]}}",
    ];
    all[random.below(all.len())]
}

/// The tasks draft: tasks with retries and error definitions.
pub fn tried(id: &str, random: &mut Random) -> String {
    let count = 1 + random.below(3);
    let mut tasks = format!(
        "- {{name: I, type: inject, start: {{kind: default}}, data: {{n: {}}}, dataInputSchema: {}, \
         dataOutputSchema: {}, transition: {{nextTask: T0}}}}\n",
        random.below(10),
        schema(random),
        schema(random),
    );
    for at in 0..count {
        let next = match at + 1 {
            next if next < count => format!("T{next}"),
            _ => "Z".to_owned(),
        };
        tasks.push_str(&task(random, at, &next));
    }
    tasks.push_str(
        "- {name: H, type: inject, data: {handled: true}, transition: {nextTask: Z}}\n\
         - {name: Z, type: inject, data: {z: true}, end: {kind: default}}\n",
    );
    let functions = ["quick", "flaky", "broken", "endless"];
    let functions = functions.map(|name| format!("{{name: {name}, resource: {name}}}"));
    format!(
        "id: {id}\nname: {id}\nversion: 1.0.0\nfunctions: [{}]\ntasks:\n{tasks}",
        functions.join(", ")
    )
}

fn task(random: &mut Random, at: usize, next: &str) -> String {
    let work = match random.below(4) {
        0 => branches(random, at),
        _ => {
            let count = 1 + random.below(2);
            let actions: Vec<String> = (0..count).map(|place| action(random, at, place)).collect();
            format!("type: operation, actions: [{}]", actions.join(", "))
        }
    };
    let mut retries = Vec::new();
    for _ in 0..random.below(3) {
        let expression = match random.below(4) {
            0 => one_of(random, &DATA),
            1 => one_of(random, &LATE),
            _ => one_of(random, &BAD),
        };
        let policy = one_of(
            random,
            &[
                "interval: PT2S, maxAttempts: 3",
                "interval: R2/PT3S, maxAttempts: 4",
                "interval: PT4S, multiplier: PT1S, maxAttempts: 2",
                "maxAttempts: 1",
            ],
        );
        retries.push(format!("{{expression: {expression}, {policy}}}"));
    }
    // The message of a timeout isn't known here, so its handler uses nothing else.
    let what = one_of(random, &["$.message", "$.error.code", "$.name", ""]);
    let filter = match what {
        "" => String::new(),
        path => format!(", errorDataFilter: {{dataOutputPath: {path}}}"),
    };
    let mut handlers = Vec::new();
    if random.percent(80) {
        handlers.push(format!(
            "{{expression: {}{filter}, transition: {{nextTask: {}}}}}",
            one_of(random, &BAD[..1]),
            ["H", next][random.below(2)]
        ));
    }
    handlers.push(format!(
        "{{expression: {}, errorDataFilter: {{dataOutputPath: $.code}}, transition: {{nextTask: {next}}}}}",
        one_of(random, &LATE[..1])
    ));
    format!(
        "- {{name: T{at}, {work}, retry: [{}], onError: [{}], dataOutputSchema: {}, transition: {{nextTask: {next}}}}}\n",
        retries.join(", "),
        handlers.join(", "),
        schema(random),
    )
}

fn action(random: &mut Random, at: usize, place: usize) -> String {
    let function = ["quick", "flaky", "broken", "endless", "quick", "flaky"][random.below(6)];
    let parameters = match random.percent(50) {
        true => format!("{{k: \"$.n\", t: {at}, p: {place}}}"),
        false => format!("{{t: {at}, p: {place}}}"),
    };
    let timeout = match function {
        "endless" => ", timeout: PT7S",
        _ => "",
    };
    format!("{{functionRef: {{refName: {function}, parameters: {parameters}}}{timeout}}}")
}

/// One branch may fail while the other one continues for long.
fn branches(random: &mut Random, at: usize) -> String {
    let function = ["quick", "flaky"][random.below(2)];
    format!(
        "type: parallel, completionType: and, branches: [\
         {{name: a, tasks: [{{name: A{at}, type: delay, start: {{kind: default}}, timeDelay: PT9M, \
         transition: {{nextTask: B{at}}}}}, {{name: B{at}, type: inject, data: {{b{at}: true}}, end: {{kind: default}}}}]}}, \
         {{name: c, tasks: [{{name: C{at}, type: delay, start: {{kind: default}}, timeDelay: PT2M, \
         transition: {{nextTask: D{at}}}}}, {{name: D{at}, type: operation, \
         actions: [{{functionRef: {{refName: {function}, parameters: {{t: {at}}}}}}}], end: {{kind: default}}}}]}}]"
    )
}

/// 0.5: handlers that repeat the state as a whole, and schemas of states.
pub fn as_a_whole(id: &str, random: &mut Random) -> String {
    let count = 1 + random.below(3);
    let mut states = format!(
        "- {{name: I, type: inject, start: {{kind: default}}, data: {{n: {}}}, dataOutputSchema: {}, \
         transition: {{nextState: S0}}}}\n",
        random.below(10),
        schema(random),
    );
    for at in 0..count {
        let next = match at + 1 {
            next if next < count => format!("S{next}"),
            _ => "Z".to_owned(),
        };
        let mode = ["sequential", "parallel"][random.below(2)];
        let failing = match (mode, ["quick", "flaky", "broken"][random.below(3)]) {
            // It would fail when `quick` begins, and end it before or after its call.
            ("parallel", "broken") => "late",
            (_, failing) => failing,
        };
        let parameters = match random.percent(50) {
            true => format!("{{k: \"{{{{ $.n }}}}\", s: {at}}}"),
            false => format!("{{s: {at}}}"),
        };
        let retry = one_of(
            random,
            &[
                "",
                "retryRef: some, ",
                "retryRef: more, ",
                "retryRef: none, ",
            ],
        );
        let error = one_of(random, &["error: bad", "error: \"*\"", "error: other"]);
        let to = [next.as_str(), "H"][random.below(2)];
        states.push_str(&format!(
            "- {{name: S{at}, type: operation, actionMode: {mode}, actions: [\
             {{functionRef: {{refName: quick, parameters: {{q: {at}}}}}, actionDataFilter: {{dataResultsPath: \"{{{{ $.n }}}}\"}}}}, \
             {{functionRef: {{refName: {failing}, parameters: {parameters}}}}}], \
             onErrors: [{{{error}, {retry}transition: {{nextState: {to}}}}}, \
             {{error: Elsewhere, code: elsewhere, transition: {{nextState: Z}}}}], dataInputSchema: {}, \
             transition: {{nextState: {next}}}}}\n",
            schema(random),
        ));
    }
    format!(
        "id: {id}\nname: {id}\nversion: \"1.0\"\nschemaVersion: \"0.5\"\nfunctions:\n  \
         - {{name: quick, operation: \"a.json#quick\"}}\n  - {{name: flaky, operation: \"a.json#flaky\"}}\n  \
         - {{name: broken, operation: \"a.json#broken\"}}\n  - {{name: late, operation: \"a.json#late\"}}\n\
         retries: [{{name: some, delay: PT3S, maxAttempts: 3}}, {{name: more, delay: PT1S, multiplier: 2, maxAttempts: 4}}, \
         {{name: none, maxAttempts: 0}}]\nstates:\n{states}\
         - {{name: H, type: inject, data: {{handled: true}}, transition: {{nextState: Z}}}}\n\
         - {{name: Z, type: inject, data: {{z: true}}, end: {{kind: default}}}}\n"
    )
}

/// 0.1: choices with comparisons, including `not`.
pub fn chosen(id: &str, random: &mut Random) -> String {
    // The early draft, which has no version key, nests conditions.
    let nested = random.percent(50);
    let mut states = String::new();
    let count = 2 + random.below(3);
    for at in 0..count {
        let (then, otherwise) = (format!("Y{at}"), format!("N{at}"));
        let test = test(random, nested);
        states.push_str(&format!(
            "  - {{name: C{at}, type: SWITCH, choices: [{{{test}, next-state: {then}}}], default: {otherwise}}}\n"
        ));
        let next = match at + 1 {
            next if next < count => format!("next-state: C{next}"),
            _ => "next-state: Z".to_owned(),
        };
        for (name, function) in [(then, "quick"), (otherwise, "slow")] {
            states.push_str(&format!(
                "  - {{name: {name}, type: OPERATION, action-mode: SEQUENTIAL, {next}, actions: [{{function: {{name: {function}, \
                 type: test}}, filter: {{ResultPath: $.r{at}}}}}]}}\n"
            ));
        }
    }
    let version = match nested {
        true => "",
        false => "schema-version: \"0.1\"\n",
    };
    format!(
        "id: {id}\nname: {id}\n{version}starts-at: C0\nstates:\n{states}  \
         - {{name: Z, type: OPERATION, action-mode: SEQUENTIAL, actions: [], end: true}}\n"
    )
}

fn test(random: &mut Random, nested: bool) -> String {
    let (one, other) = (comparison(random, nested), comparison(random, nested));
    match (random.below(5), nested) {
        (0, true) => format!("not: {{and: [{one}, {{not: {other}}}]}}"),
        (1, true) => format!("or: [{one}, {{not: {other}}}]"),
        (2, _) => format!("and: [{one}, {other}]"),
        (3, true) => format!("not: {other}"),
        (3, false) => format!("or: [{one}, {other}]"),
        _ => format!("not: [{one}, {other}]"),
    }
}

/// A comparison with `n`, a number, or with `order`, a text.
fn comparison(random: &mut Random, nested: bool) -> String {
    let operators: &[&str] = match nested {
        true => &[
            "Equals",
            "LessThan",
            "LessThanEquals",
            "GreaterThan",
            "GreaterThanEquals",
        ],
        false => &[
            "EQ", "LT", "LTEQ", "GT", "GTEQ", "StrEQ", "StrLT", "StrGTEQ",
        ],
    };
    let operator = operators[random.below(operators.len())];
    let (path, value) = match random.below(4) {
        0 => ("$.order", 5),
        1 => ("$.order", 42),
        _ => ("$.n", random.below(12)),
    };
    format!("{{path: {path}, operator: {operator}, value: \"{value}\"}}")
}
