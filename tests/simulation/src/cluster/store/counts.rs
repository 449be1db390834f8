//! The counts of a run.

#[derive(Debug, Default, Clone)]
pub struct Counts {
    pub commits: usize,
    /// Instances that ended with their creation and left effects.
    pub with_effects: usize,
    /// Created together with a first turn that doesn't end the instance.
    pub with_turn: usize,
    pub refused_commits: usize,
    pub leases_run_out: usize,
    pub failed_calls: usize,
    pub lost_answers: usize,
    pub reopened: usize,
    pub kills: usize,
    pub pauses: usize,
    /// Join messages that a coordinator received.
    pub joins: usize,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.commits += other.commits;
        self.with_effects += other.with_effects;
        self.with_turn += other.with_turn;
        self.refused_commits += other.refused_commits;
        self.leases_run_out += other.leases_run_out;
        self.failed_calls += other.failed_calls;
        self.lost_answers += other.lost_answers;
        self.reopened += other.reopened;
        self.kills += other.kills;
        self.pauses += other.pauses;
        self.joins += other.joins;
    }
}
