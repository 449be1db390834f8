//! Reads the results of forks for their parents, page by page, from the fields that the branches wrote.
//!
//! A commit that completes a fork only notifies the parent, since reading the results would block the server.

use redis::Cmd;
use swirl_commit::Numbers;
use swirl_model::event::Input;
use swirl_model::ids::ScopeRef;
use swirl_model::scope::BranchResult;
use swirl_ports::{InboxItem, Result};

use crate::Redis;
use crate::numbers;
use crate::reply::json;

/// The limits of a page of results: their number, and their approximate size. Both sides hold a page in memory.
const PAGE_RESULTS: u32 = 500;
const PAGE_BYTES: u64 = 1 << 20;

impl Redis {
    pub(crate) fn is_large_join(&self, results: u32, bytes: u64) -> bool {
        self.options().join_limits.are_exceeded(results, bytes)
    }

    pub(crate) async fn results_of(
        &self,
        parent: &ScopeRef,
        fork: u32,
    ) -> Result<Vec<(u32, BranchResult)>> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(self.keys().hash_of(&parent.instance));
        read.arg(format!("g:{}.{fork}", parent.scope));
        let numbers: Option<Vec<u8>> = self.query(read).await?;
        let Some(numbers) = numbers else {
            return Ok(Vec::new());
        };
        let numbers = numbers::decode(&numbers, &format!("fork {fork} of {parent}"))?;
        match numbers.passes_results() {
            true => self.result_pages(parent, fork, &numbers).await,
            false => Ok(Vec::new()),
        }
    }

    /// Reads results in pages. Results are written once, and only a commit of the parent removes them, so the pages
    /// belong together; otherwise the parent's commit is refused.
    pub(crate) async fn result_pages(
        &self,
        parent: &ScopeRef,
        fork: u32,
        numbers: &Numbers,
    ) -> Result<Vec<(u32, BranchResult)>> {
        let key = self.keys().hash_of(&parent.instance);
        let usual = (numbers.bytes / u64::from(numbers.reported().max(1))).max(1);
        let page = u32::try_from(PAGE_BYTES / usual).unwrap_or(PAGE_RESULTS);
        let page = page.clamp(1, PAGE_RESULTS);
        let mut results = Vec::with_capacity(numbers.reported().min(numbers.open) as usize);
        let mut first = 0;
        while first < numbers.open {
            let last = numbers.open.min(first + page);
            let mut read = Cmd::new();
            read.arg("HMGET").arg(&key);
            result_fields(&mut read, parent, fork, first..last);
            let found: Vec<Option<Vec<u8>>> = self.query(read).await?;
            add_results(&mut results, parent, fork, first, found)?;
            first = last;
        }
        Ok(results)
    }

    /// Adds the results to the inputs that report forks.
    pub(crate) async fn add_results(
        &self,
        scope: &ScopeRef,
        items: &mut [InboxItem],
    ) -> Result<()> {
        for item in items {
            if let Input::Joined { fork, results, .. } = &mut item.input {
                *results = self.results_of(scope, *fork).await?;
            }
        }
        Ok(())
    }
}

pub(crate) fn result_fields(
    read: &mut Cmd,
    parent: &ScopeRef,
    fork: u32,
    branches: std::ops::Range<u32>,
) {
    for index in branches {
        read.arg(format!("b:{}.{fork}.{index}", parent.scope));
    }
}

/// `first`: the branch of the first field.
pub(crate) fn add_results(
    results: &mut Vec<(u32, BranchResult)>,
    parent: &ScopeRef,
    fork: u32,
    first: u32,
    found: Vec<Option<Vec<u8>>>,
) -> Result<()> {
    for (index, result) in (first..).zip(found) {
        if let Some(result) = result {
            let what = format!("the result of branch {index} of fork {fork} of {parent}");
            results.push((index, json(&result, &what)?));
        }
    }
    Ok(())
}
