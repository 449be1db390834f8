//! The inbox of a scope after a commit.

use swirl_model::event::Input;
use swirl_ports::Commit;

/// The kind of an input, as far as it matters for its inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Processed even while the instance stands still, and it may be repeated.
    Operator,
    /// A timer or a wake-up, which may come again.
    Timed,
    /// An event that the instance has consumed. One that is only offered isn't among them.
    Event,
    /// The end of a fork. The fork's numbers notify its scope once for each time that it is waited for.
    Join,
    Other,
}

impl Kind {
    pub fn of(input: &Input) -> Kind {
        match input {
            input if input.is_operator() => Kind::Operator,
            Input::Wake | Input::Timer { .. } | Input::TimedOutMeanwhile { .. } => Kind::Timed,
            Input::Event { offered: false, .. } => Kind::Event,
            Input::Joined { .. } => Kind::Join,
            _ => Kind::Other,
        }
    }

    /// Whether the id of a consumed input is remembered, so that the input isn't accepted again. Ids contain sequence
    /// numbers, so old ones belong to a call or wait that is over, and the engine rejects their inputs: a backend
    /// remembers as many as suits it.
    pub fn is_remembered(self) -> bool {
        matches!(self, Kind::Event | Kind::Other)
    }
}

/// A waiting input.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    pub id: &'a str,
    pub kind: Kind,
    /// The token of the lease that it was handed to.
    pub handed_to: Option<u64>,
    /// Its share of the instance's size.
    pub kib: usize,
}

impl Item<'_> {
    /// Whether it matters. While the instance stands still, only an operator's inputs do.
    fn counts(&self, stands_still: bool) -> bool {
        !stands_still || self.kind == Kind::Operator
    }
}

/// The items of an inbox by their positions, in order.
#[derive(Debug, Default)]
pub struct Inbox {
    pub consumed: Vec<usize>,
    pub left: Vec<usize>,
    /// Those that go with their scope. Events among them can be had by other scopes of the instance.
    pub dropped: Vec<usize>,
}

impl Inbox {
    /// `gone`: nothing of the scope is kept.
    pub(crate) fn of(commit: &Commit, items: &[Item<'_>], gone: bool) -> Inbox {
        let mut inbox = Inbox::default();
        for (place, item) in items.iter().enumerate() {
            let places = if commit.consumed.iter().any(|id| id == item.id) {
                &mut inbox.consumed
            } else if gone {
                &mut inbox.dropped
            } else {
                &mut inbox.left
            };
            places.push(place);
        }
        inbox
    }

    /// The positions of the items that are removed.
    pub fn removed(&self) -> impl Iterator<Item = usize> {
        self.consumed.iter().chain(&self.dropped).copied()
    }

    /// Whether some items haven't been handed to the holder with this token.
    pub(crate) fn has_news(&self, items: &[Item<'_>], token: u64, stands_still: bool) -> bool {
        let all = self.left.iter().chain(&self.dropped);
        let mut counted = all.filter(|place| items[**place].counts(stands_still));
        counted.any(|place| items[*place].handed_to != Some(token))
    }

    /// Whether an input that is left gives the scope something to do.
    pub(crate) fn has_work(&self, items: &[Item<'_>], stands_still: bool) -> bool {
        let mut left = self.left.iter();
        left.any(|place| items[*place].counts(stands_still))
    }
}

/// Whether one of the waiting inputs gives the scope something to do.
pub(crate) fn had_work(items: &[Item<'_>], stood_still: bool) -> bool {
    items.iter().any(|item| item.counts(stood_still))
}

/// The size of the items at these positions.
pub(crate) fn kib_of<'p>(items: &[Item<'_>], places: impl IntoIterator<Item = &'p usize>) -> usize {
    places.into_iter().map(|place| items[*place].kib).sum()
}
