//! Regular expressions of the document itself. Each is compiled with the definition and stays in memory with it, so all of
//! them together have a limit.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_expr::{PATTERNS_MAX, Pattern};

use super::ctx::Ctx;

impl Ctx<'_> {
    /// Checks a regular expression, and returns the reason why it can't be used. It isn't compiled here.
    pub fn check_pattern(&mut self, node: &Node, source: &str) -> Result<(), String> {
        let bytes = Pattern::weigh(source)?;
        self.has_room_for_patterns(node, bytes);
        Ok(())
    }

    /// Counts the memory of regular expressions. Those that exceed the limit are reported once.
    pub fn has_room_for_patterns(&mut self, node: &Node, bytes: usize) -> bool {
        let before = self.pattern_bytes;
        self.pattern_bytes = before.saturating_add(bytes);
        if before <= PATTERNS_MAX && self.pattern_bytes > PATTERNS_MAX {
            let message = format!(
                "from here on, the regular expressions of this document need more than {} MiB of memory",
                PATTERNS_MAX >> 20
            );
            let hint = "use fewer of them, or smaller repetitions such as '{1,20}'".to_owned();
            self.error(node, codes::BAD_PATTERN, message, hint);
        }
        self.pattern_bytes <= PATTERNS_MAX
    }
}
