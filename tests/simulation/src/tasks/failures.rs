//! Random tasks that fail, catch errors, and race.

use serde_json::{Value, json};

use super::shapes::{Around, Shapes};

impl Shapes {
    /// One branch fails long after the others are done, or while they are stuck.
    pub fn fork_that_fails(&mut self, around: &Around) -> Value {
        let inside = around.repeated();
        let (late, good) = (self.minutes(12), self.some(&inside));
        let (raise, stuck) = (self.raise(&inside), self.http(&inside, &["endless"]));
        let last = match self.random.percent(20) {
            true => json!({"set": {"n": 1, "order": "over"}, "then": "end"}),
            false => raise,
        };
        let fork = json!({"fork": {"branches": [
            {"good": {"do": good}},
            {"bad": {"do": [{"late": {"wait": late}}, {"last": last}]}},
            {"stuck": stuck}
        ]}, "output": {"as": "${ $input + {never: true} }"}});
        self.mostly_caught(fork)
    }

    pub fn race(&mut self, around: &Around) -> Value {
        let own = self.next();
        let inside = around.repeated();
        let (first, second) = (self.minutes(5), self.minutes(40));
        let (one, other) = (self.some(&inside), self.some(&inside));
        let raise = self.raise(&inside);
        let mut winner = vec![json!({"first": {"wait": first}})];
        let all_fail = self.random.percent(25);
        match all_fail {
            true => winner.push(json!({"fails": self.raise(&inside)})),
            false => winner.extend(one.as_array().cloned().unwrap_or_default()),
        }
        let mut slower = vec![json!({"second": {"wait": second}})];
        match all_fail {
            true => slower.push(json!({"fails": self.raise(&inside)})),
            false => slower.extend(other.as_array().cloned().unwrap_or_default()),
        }
        let mut branches = vec![
            json!({"one": {"do": winner}}),
            json!({"other": {"do": slower}}),
        ];
        if self.random.percent(40) {
            let at = self.random.below(3);
            branches.insert(at, json!({"lost": raise}));
        }
        if self.random.percent(50) {
            branches.swap(0, 1);
        }
        let race = json!({"fork": {"compete": true, "branches": branches},
            "output": {"as": format!("${{ $input + {{won{own}: .n?}} }}")}});
        match all_fail {
            true => self.mostly_caught(race),
            false => race,
        }
    }

    pub fn mostly_caught(&mut self, task: Value) -> Value {
        match self.random.percent(85) {
            true => {
                let catch = self.catch();
                json!({"try": [{"inner": task}], "catch": catch})
            }
            false => task,
        }
    }

    pub fn raise(&mut self, around: &Around) -> Value {
        let number = self.number(around);
        let own = "https://serverlessworkflow.io/spec/1.0.0/errors/";
        let error = self.one(&[
            json!("known"),
            json!({"type": format!("{own}authorization"), "status": 403, "title": "No ${ .n }"}),
            json!({"type": "https://example.org/tea", "status": 418,
                "detail": format!("pot ${{ .order }}, ${{ {number} }}")}),
            json!({"type": "https://example.org/far", "status": 500, "title": "Far", "instance": "/do/far"}),
        ]);
        json!({"raise": {"error": error}})
    }

    /// `catch` with a handler.
    fn catch(&mut self) -> Value {
        let own = self.next();
        let name = self.one(&["error", "e"]);
        let put = format!("${{ . + {{h{own}: (${name} | {{type, status, title, instance}})}} }}");
        let mut catch = json!({"do": [{"handled": {"set": put}}]});
        if name != "error" || self.random.percent(30) {
            catch["as"] = json!(name);
        }
        if self.random.percent(25) {
            catch["errors"] = self.one(&[
                json!({"with": {"type": "https://serverlessworkflow.io/dsl/errors/types/communication"}}),
                json!({"with": {"status": 503}}),
                json!({"with": {"status": 403, "type": "https://serverlessworkflow.io/spec/1.0.0/errors/authorization"}}),
                json!({"with": {"title": "Far"}}),
                json!({"with": {"instance": "/do/far"}}),
                json!({"with": {"detail": "pot 42"}}),
                json!({"with": {"type": "https://open-workflow-specification.org/spec/1.0.0/errors/expression"}}),
            ]);
        }
        if self.random.percent(20) {
            catch["when"] =
                json!(self.one(&["${ .status >= 400 }", ".status != 403", "$context.k1 != 3"]));
        }
        if self.random.percent(15) {
            catch["exceptWhen"] = json!(self.one(&[
                "${ .status == 500 }",
                ".title == \"Timeout\"",
                ".instance == \"/do/far\""
            ]));
        }
        catch
    }

    pub fn attempts(&mut self, around: &Around, later: &[String]) -> Value {
        let inside = around.inside();
        let mut catch = self.catch();
        if self.random.percent(20) {
            catch["then"] = json!(self.way(later));
        }
        if self.random.percent(12) {
            catch["do"] = self.some(&around.repeated());
        } else if self.random.percent(10)
            && let Some(members) = catch.as_object_mut()
        {
            members.remove("do");
        }
        let mut body = match self.random.percent(50) {
            true => self
                .some(&around.repeated())
                .as_array()
                .cloned()
                .unwrap_or_default(),
            false => Vec::new(),
        };
        let failing = match self.random.below(8) {
            0 => self.raise(&inside),
            1 | 2 => {
                catch["retry"] = self.policy();
                self.http(&inside, &["flaky"])
            }
            3 => {
                catch["retry"] = self.policy();
                self.http(&inside, &["broken", "late"])
            }
            4 => self.one(&[
                json!({"set": "${ .order + 1 }"}),
                json!({"switch": [{"c": {"when": ".n", "then": "exit"}}]}),
            ]),
            5 if self.is_slow(around) => {
                let call = self.http(&inside, &["endless"]);
                let after = self.minutes(20);
                match self.random.below(3) {
                    0 => {
                        catch["retry"] =
                            json!({"limit": {"attempt": {"count": 1, "duration": after}}});
                        call
                    }
                    1 => json!({"do": [{"stuck": call}], "timeout": {"after": after}}),
                    _ => {
                        let mut call = call;
                        call["timeout"] = json!({"after": after});
                        call
                    }
                }
            }
            6 => {
                json!({"do": [{"deep": {"for": {"in": "[1, 2]"}, "do": [{"deeper": self.raise(&inside)}]}}]})
            }
            _ => self.http(&inside, &["broken"]),
        };
        let own = self.next();
        body.push(json!({format!("x{own}"): failing}));
        if self.random.percent(30) {
            body.extend(
                self.list(&around.repeated(), 1)
                    .as_array()
                    .cloned()
                    .unwrap_or_default(),
            );
        }
        json!({"try": body, "catch": catch})
    }

    fn policy(&mut self) -> Value {
        let mut policy = self.one(&[
            json!("often"),
            json!("often"),
            json!({"delay": {"seconds": 2}, "limit": {"attempt": {"count": 4}}}),
            json!({"delay": "PT1S", "backoff": {"exponential": {}}, "limit": {"attempt": {"count": 3}}}),
            json!({"delay": {"seconds": 1}, "backoff": {"linear": {}}, "limit": {"attempt": {"count": 4}}}),
            json!({"limit": {"attempt": {"count": 1}}}),
            json!({"delay": {"milliseconds": 700}, "limit": {"attempt": {"count": 0}}}),
        ]);
        if policy.is_object() {
            if self.random.percent(20) {
                policy["when"] = json!(self.one(&[".status == 503", "${ .status < 500 }"]));
            }
            if self.random.percent(20) {
                policy["jitter"] =
                    json!({"from": {"milliseconds": 250}, "to": {"milliseconds": 250}});
            }
        }
        policy
    }
}
