//! Random tasks. The data is an object with a number `n` and a text `order` nearly everywhere, so that expressions
//! mostly succeed.
//!
//! Races, failures beside other branches and timeouts decide an outcome by their time, so they are minutes apart from all
//! else. Few of these are in a document, and none in a loop.

use serde_json::{Value, json};

use crate::random::Random;

/// The surroundings of a task.
#[derive(Clone, Default)]
pub struct Around {
    pub depth: usize,
    /// It may run more than once, or beside others.
    pub repeats: bool,
    pub vars: Vec<String>,
    /// Documents that may be run.
    pub subs: bool,
    pub functions: bool,
    /// It may wait for events of the plan.
    pub hears: bool,
}

impl Around {
    pub fn inside(&self) -> Around {
        Around {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    pub fn repeated(&self) -> Around {
        Around {
            repeats: true,
            hears: false,
            ..self.inside()
        }
    }
}

pub struct Shapes {
    pub random: Random,
    /// How many things that take minutes may still be written.
    pub slow: usize,
    /// Milliseconds after the start, and type.
    pub events: Vec<(i64, String)>,
    names: usize,
    emits: usize,
}

impl Shapes {
    pub fn new(random: Random, slow: usize) -> Shapes {
        Shapes {
            random,
            slow,
            events: Vec::new(),
            names: 0,
            emits: 0,
        }
    }

    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())].clone()
    }

    pub fn next(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Minutes that no other duration has in common with this one.
    pub fn minutes(&mut self, least: usize) -> Value {
        let seconds = 60 * (least + self.random.below(4));
        let own = self.random.below(900);
        json!({"seconds": seconds, "milliseconds": own})
    }

    pub fn list(&mut self, around: &Around, count: usize) -> Value {
        let first = self.names + 1;
        let names: Vec<String> = (0..count)
            .map(|index| format!("t{}", first + index))
            .collect();
        self.names += count;
        let mut list = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let mut task = self.task(around, &names[index + 1..]);
            self.decorate(&mut task, around, &names[index + 1..]);
            list.push(json!({name.as_str(): task}));
        }
        Value::Array(list)
    }

    pub fn some(&mut self, around: &Around) -> Value {
        let count = 1 + self.random.below(3);
        self.list(around, count)
    }

    /// An expression that gives a number.
    pub fn number(&mut self, around: &Around) -> String {
        match self.random.below(8) {
            0 => "$workflow.input.n".to_owned(),
            1 => "($context.k1 // 4)".to_owned(),
            2 => "($task.reference | length)".to_owned(),
            3 => "($input.n + 1)".to_owned(),
            4 if !around.vars.is_empty() => {
                let name = self.one(&around.vars);
                format!("(${name} | if type == \"number\" then . else 3 end)")
            }
            5 => "($context | length)".to_owned(),
            6 => "($task.name | length)".to_owned(),
            _ => ".n".to_owned(),
        }
    }

    fn test(&mut self, around: &Around) -> String {
        let number = self.number(around);
        let (by, is) = (2 + self.random.below(3), self.random.below(3));
        let text = match self.random.below(5) {
            0 => format!("$context.k{} != null", self.random.below(4)),
            1 => "null".to_owned(),
            _ => format!("{number} % {by} == {is}"),
        };
        match self.random.percent(50) {
            true => text,
            false => format!("${{ {text} }}"),
        }
    }

    /// A flow directive. `later`: the tasks of the list that follow.
    pub fn way(&mut self, later: &[String]) -> String {
        match self.random.below(12) {
            0 => "exit".to_owned(),
            1 if self.random.percent(30) => "end".to_owned(),
            2 | 3 => "continue".to_owned(),
            _ if later.is_empty() => "exit".to_owned(),
            _ => self.one(later),
        }
    }

    /// Adds the properties that all tasks may have.
    fn decorate(&mut self, task: &mut Value, around: &Around, later: &[String]) {
        let own = self.next();
        if self.random.percent(12) {
            // It sees neither the input of the task nor the last authorization.
            let by = 2 + self.random.below(3);
            task["if"] = json!(self.one(&[
                format!("${{ .n % {by} == 0 }}"),
                format!(".n % {by} != 1"),
                "$context.k1 != 2".to_owned(),
                "${ $task.name | length > 1 }".to_owned(),
            ]));
        }
        if self.random.percent(12) {
            task["input"] = self.one(&[
                json!({"from": "${ . + {from: .n} }"}),
                json!({"from": {"n": "${ (.n + 1) % 10 }", "order": "${ .order }"}}),
                json!({"schema": {"document": {"type": "object", "required": ["n"]}}}),
                json!({"schema": {"format": "json", "document": {"required": ["order"]}}, "from": "."}),
            ]);
        } else if self.random.percent(1) {
            task["input"] = json!({"schema": {"document": {"required": ["nothing"]}}});
        }
        if task.get("output").is_none() && self.random.percent(15) {
            task["output"] = self.one(&[
                json!({"as": format!("${{ . + {{o{own}: ($input.n // 0)}} }}")}),
                json!({"as": {"n": "${ .n }", "order": "${ .order }", "was": "${ $task.input.n }"}}),
                json!({"schema": {"document": {"type": "object"}}}),
                json!({"as": "$task.output"}),
            ]);
        }
        if self.random.percent(25) {
            let key = self.random.below(4);
            let number = self.number(around).replace("$task.reference", "$task.name");
            task["export"] = self.one(&[
                json!({"as": format!("${{ $context + {{k{key}: .n}} }}")}),
                json!({"as": {format!("k{key}"): "${ $output.n }", "in": "${ $input.n }", "old": "${ $context.k1 }"}}),
                json!({"as": format!("$context + {{k{key}: {number}}}"),
                    "schema": {"document": {"type": "object"}}}),
            ]);
        }
        if task.get("timeout").is_none() && self.random.percent(5) {
            task["timeout"] = self.one(&[json!({"after": {"hours": 90}}), json!("long")]);
        }
        if task.get("then").is_none() && self.random.percent(10) {
            task["then"] = json!(self.way(later));
        }
        if self.random.percent(4) {
            task["metadata"] = json!({"own": own});
        }
    }

    fn task(&mut self, around: &Around, later: &[String]) -> Value {
        let own = self.next();
        let deep = around.depth < 3;
        match self.random.below(22) {
            0 | 1 => self.set(around),
            2 if deep => {
                let list = self.some(&around.inside());
                json!({"do": list})
            }
            3 | 4 if deep => self.each(around),
            5 | 6 if !later.is_empty() => self.switch(around, later),
            7 | 8 if deep => self.fork(around),
            9 if deep && self.is_slow(around) => self.fork_that_fails(around),
            10 if deep && self.is_slow(around) => self.race(around),
            11..=13 if deep => self.attempts(around, later),
            14 => {
                let millis = 1 + self.random.below(9_000);
                self.one(&[
                    json!({"wait": {"milliseconds": millis}}),
                    json!({"wait": "PT3S"}),
                ])
            }
            15 | 16 => self.http(around, &["quick", "slow"]),
            17 if around.functions => {
                let name = self.one(&["fa", "fb", "fc"]);
                let number = self.number(around);
                let with = json!({"n": format!("${{ {number} % 10 }}"), "order": "${ .order }"});
                let output = json!({"as": format!("${{ $input + {{g{own}: .n}} }}")});
                match self.random.percent(25) {
                    true => json!({"call": name, "output": output}),
                    false => json!({"call": name, "with": with, "output": output}),
                }
            }
            18 if around.subs => self.sub(around),
            19 if !around.repeats && self.emits < 3 => self.emit(),
            20 if around.hears => self.listen(around),
            21 if self.random.percent(12) => self.raise(around),
            _ => self.set(around),
        }
    }

    pub fn is_slow(&mut self, around: &Around) -> bool {
        let is_slow = self.slow > 0 && !around.repeats;
        self.slow -= usize::from(is_slow);
        is_slow
    }

    fn set(&mut self, around: &Around) -> Value {
        let (own, number) = (self.next(), self.number(around));
        let object = json!({
            "n": format!("${{ ({number} * 3 + 1) % 10 }}"), "order": "${ .order }",
            "text": "n is ${ .n }, ${ .order }!", "bare": ".n", "word": "plain",
            "list": [1, "${ .n }", {"x": "${ $context.k1 }"}, null, true]
        });
        match self.random.below(20) {
            0 => json!({"set": "${ .order + 1 }"}),
            1..6 => json!({"set": object}),
            6..9 => json!({"set": format!("${{ .n = ((.n + {number}) % 10) }}")}),
            _ => json!({"set": format!("${{ . + {{a{own}: ({number} + {own})}} }}")}),
        }
    }

    fn each(&mut self, around: &Around) -> Value {
        let mut inside = around.repeated();
        let (mut each, mut item, mut index) = (json!({}), "item", "index");
        if self.random.percent(50) {
            (item, index) = self.one(&[("x", "i"), ("y", "j")]);
            each = json!({"each": item, "at": index});
        }
        inside.vars = vec![item.to_owned(), index.to_owned()];
        inside.vars.extend(around.vars.iter().cloned());
        each["in"] = self.one(&[
            json!("${ [range(.n % 4)] }"),
            json!("[.n, 2, 5]"),
            json!([1, "${ .n }", {"a": "${ .order }"}]),
            json!("${ [] }"),
            json!("[{a: .n}, null]"),
        ]);
        if self.random.percent(4) {
            each["in"] = json!("${ .order }");
        }
        let mut task = json!({"for": each, "do": []});
        if self.random.percent(30) {
            task["while"] = json!(format!("${{ ${index} < 2 and .n != 7 }}"));
        }
        if self.random.percent(95) {
            task["do"] = self.some(&inside);
        }
        task
    }

    fn switch(&mut self, around: &Around, later: &[String]) -> Value {
        let mut cases = Vec::new();
        for index in 0..1 + self.random.below(3) {
            let (when, then) = (self.test(around), self.way(later));
            cases.push(json!({format!("c{index}"): {"when": when, "then": then}}));
        }
        if self.random.percent(50) {
            let at = self.random.below(cases.len() + 1);
            let then = self.way(later);
            cases.insert(at, json!({"other": {"then": then}}));
        }
        json!({"switch": cases})
    }

    fn fork(&mut self, around: &Around) -> Value {
        let own = self.next();
        let inside = around.repeated();
        let mut branches = Vec::new();
        for index in 0..1 + self.random.below(3) {
            let mut task = match self.random.percent(60) {
                true => {
                    let list = self.some(&inside);
                    json!({"do": list})
                }
                false => self.http(&inside, &["quick", "slow"]),
            };
            self.decorate(&mut task, &inside, &[]);
            if let Some(task) = task.as_object_mut() {
                task.remove("then");
            }
            branches.push(json!({format!("b{index}"): task}));
        }
        json!({"fork": {"branches": branches}, "output": {"as": format!("${{ $input + {{f{own}: [.[] | .n?]}} }}")}})
    }

    pub fn http(&mut self, around: &Around, functions: &[&str]) -> Value {
        let (own, function, number) = (self.next(), self.one(functions), self.number(around));
        let body = json!({"p": own, "n": format!("${{ {number} }}")});
        let endpoint = self.one(&[
            json!(format!("http://sim.test/{function}/{own}")),
            json!(format!("http://sim.test/{function}/{{n}}/{{nothing}}")),
            json!({"uri": format!("http://sim.test/{function}")}),
            json!(format!("${{ \"http://sim.test/{function}/\" + .order }}")),
        ]);
        let output = self.one(&[
            json!({"as": format!("${{ $input + {{c{own}: .n}} }}")}),
            json!({"as": format!("$input + {{n: ((.n? // 1) % 10), c{own}: .n?}}")}),
        ]);
        json!({"call": "http", "with": {"method": "post", "endpoint": endpoint, "body": body}, "output": output})
    }

    fn sub(&mut self, around: &Around) -> Value {
        let (own, name, number) = (self.next(), self.one(&["sub", "leaf"]), self.number(around));
        let mut sub =
            json!({"namespace": "sim", "name": name, "version": self.one(&["1.0.0", "latest"])});
        if self.random.percent(90) {
            sub["input"] = json!({"n": format!("${{ {number} % 10 }}"), "order": "${ .order }"});
        }
        let mut task = json!({"run": {"workflow": sub}});
        match self.random.below(8) {
            0 if !around.repeats => task["run"]["await"] = json!(false),
            1 => {
                task["run"]["return"] = json!("none");
                task["output"] = json!({"as": format!("${{ $input + {{s{own}: .}} }}")});
            }
            _ => task["output"] = json!({"as": format!("${{ $input + {{s{own}: .n?}} }}")}),
        }
        match self.random.percent(60) {
            true => self.mostly_caught(task),
            false => task,
        }
    }

    fn emit(&mut self) -> Value {
        self.emits += 1;
        let own = self.next();
        let mut with = json!({"type": "told", "data": {"n": "${ .n }", "order": "${ .order }"}, "orderid": "${ .order }"});
        // The version of the workflow is a part of its own source, and the instances that an event starts are named
        // after its source.
        let shown = match self.random.percent(60) {
            true => {
                with["source"] = json!("/sim");
                ".data.n?"
            }
            false => {
                with["type"] = json!(format!("other{own}"));
                "[.type, .data.n, .orderid, (.source | split(\"/\")[:3])]?"
            }
        };
        let output = json!({"as": format!("${{ $input + {{e{own}: {shown}}} }}")});
        json!({"emit": {"event": {"with": with}}, "output": output})
    }

    /// An event of the plan with a type of its own.
    fn planned(&mut self, at: i64) -> Value {
        let mut kind = format!("e{}", self.next());
        let mut pattern = kind.clone();
        if self.random.percent(10) {
            pattern.push_str("-.*");
            kind.push_str("-a");
        }
        self.events.push((at, kind.clone()));
        let mut filter = json!({"with": {"type": pattern}, "correlate": {
            "order": {"from": self.one(&[".orderid", "${ .orderid }"]), "expect": "${ .order }"}}});
        if self.random.percent(10)
            && let Some(rule) = filter["correlate"]["order"].as_object_mut()
        {
            rule.remove("expect");
        }
        if self.random.percent(15) {
            filter["with"]["source"] = json!("plan");
        }
        if self.random.percent(15) {
            filter["with"]["data"] = json!(format!("${{ .got == \"{kind}\" }}"));
        }
        if self.random.percent(10) {
            filter["with"]["data"] = json!({"got": kind});
        }
        filter
    }

    /// `until` as a strategy.
    fn stops(&mut self, at: i64) -> Value {
        let one = self.planned(at);
        match self.random.percent(30) {
            true => json!({"all": [self.planned(at - 3 * 60_000), one]}),
            false => json!({"one": one}),
        }
    }

    fn listen(&mut self, around: &Around) -> Value {
        let own = self.next();
        let minute = 60_000;
        let start = self.random.below(30) as i64 * 1_000;
        let mut at = start + self.random.below(900) as i64;
        let mut when = |shapes: &mut Shapes| {
            let now = at;
            at += (9 + shapes.random.below(5) as i64) * minute;
            now
        };
        let read = self.one(&["data", "data", "envelope", "raw"]);
        let shown = match read {
            "envelope" => "[.[] | .data.got?]",
            "raw" => "[.[] | fromjson? | .got?]",
            _ => "[.[] | .got?]",
        };
        let (one, two, three) = (when(self), when(self), when(self));
        let to = match self.random.below(6) {
            0 | 1 => json!({"one": self.planned(one)}),
            2 => json!({"all": [self.planned(one), self.planned(two)]}),
            3 => {
                json!({"any": [self.planned(one), self.planned(two)], "until": "${ length == 2 }"})
            }
            4 => {
                json!({"any": [self.planned(one), self.planned(two)], "until": self.stops(three)})
            }
            _ => json!({"any": [self.planned(one)]}),
        };
        let mut task = json!({"listen": {"to": to, "read": read},
            "output": {"as": format!("${{ $input + {{l{own}: {shown}}} }}")}});
        if self.random.percent(40) {
            let mut inside = around.repeated();
            inside.vars = vec!["item".to_owned(), "index".to_owned()];
            let mut each = json!({});
            if self.random.percent(70) {
                each["do"] = self.some(&inside);
            }
            let shown = self.one(&[
                "${ {got: [$index, (.n? // $item)]} }",
                ". + {got: $index}",
                "{got: ($item | type)}",
            ]);
            if each.get("do").is_some() || read != "raw" {
                each["output"] = json!({"as": shown});
            }
            if self.random.percent(30) {
                each["export"] = json!({"as": "${ $context + {heard: $index} }"});
            }
            task["foreach"] = each;
            task["output"] = json!({"as": format!("${{ $input + {{l{own}: [.[] | .got?]}} }}")});
        }
        task
    }
}
