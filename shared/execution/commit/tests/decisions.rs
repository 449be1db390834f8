//! The rules about commits, one by one. `tests/contract` checks them with every backend.
#![allow(clippy::unwrap_used, reason = "a test")]

use swirl_commit::{
    Answer, CommitParts, Decision, Flags, ForkState, Hold, Item, Kind, LeaseChange, Numbers,
    OwnFork, Record, Request, Size, Snapshot, Undecided, decide,
};
use swirl_contract::kit;
use swirl_model::event::{Command, Input};
use swirl_model::ids::InstanceId;
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::{Cursor, Role, Scope, Timer};
use swirl_ports::{Commit, Lease};

const TOKEN: u64 = 7;

/// A commit of a scope that is held with [`TOKEN`], and was read with revision 3.
fn commit(scope: &str, commands: Vec<Command>) -> Commit {
    let scope = kit::scope("a", scope);
    let record: Scope = kit::new("a").root;
    let record = Scope {
        id: scope.scope.clone(),
        cursor: kit::calling(1),
        role: Role::Root,
        ..record
    };
    Commit {
        lease: Lease::new(scope, TOKEN),
        scope: record,
        consumed: Vec::new(),
        refused: Vec::new(),
        history: Vec::new(),
        commands,
        at: kit::at(0),
        require_unchanged_inbox: false,
        release: true,
        lease_ms: 1,
        fits: false,
    }
}

fn held(token: u64) -> Hold {
    Hold::By {
        token,
        is_notified: false,
        is_same_attempt: false,
        has_expired: false,
    }
}

/// Everything is known of a scope with a record.
fn known() -> Snapshot<'static> {
    Snapshot {
        is_complete: true,
        hold: held(TOKEN),
        record: Some(Record {
            version: Some((3, 0)),
            flags: Flags::default(),
            kib: 0,
        }),
        is_unborn: Some(false),
        items: Some(&[]),
        timers: Some(&[]),
        size: Some(0),
        ..Snapshot::default()
    }
}

fn with_size<'a>(
    commit: &'a Commit,
    known: &Snapshot<'_>,
    size: Size,
) -> Result<Decision<'a>, Undecided> {
    let parts = CommitParts::of(commit);
    let effects = parts.effects([InstanceId::new("child")].into_iter()).len();
    let request = Request {
        commit,
        parts: &parts,
        rev: 3,
        effects,
        refers_to_fork: false,
        size,
        limit: Some(100),
    };
    decide(&request, known)
}

fn decided<'a>(commit: &'a Commit, known: &Snapshot<'_>) -> Result<Decision<'a>, Undecided> {
    with_size(commit, known, Size::default())
}

fn answer(commit: &Commit, known: &Snapshot<'_>) -> Option<Answer> {
    match decided(commit, known) {
        Err(Undecided::Answer(answer)) => Some(answer),
        Err(Undecided::Unknown) => panic!("a part is missing"),
        Ok(_) => None,
    }
}

const REFUSED: Option<Answer> = Some(Answer::Refused { releases: false });
const RELEASED: Option<Answer> = Some(Answer::Refused { releases: true });

fn item(id: &str, kind: Kind, handed_to: Option<u64>) -> Item<'_> {
    Item {
        id,
        kind,
        handed_to,
        kib: 0,
    }
}

#[test]
fn only_the_holder_commits() {
    let commit = commit("r", Vec::new());
    let hold = |hold| Snapshot { hold, ..known() };
    assert_eq!(answer(&commit, &hold(held(TOKEN))), None);
    assert_eq!(answer(&commit, &hold(held(8))), REFUSED);
    assert_eq!(answer(&commit, &hold(Hold::None)), REFUSED);
    // As far as the holder knows, it still is.
    let unsure = Snapshot {
        is_complete: false,
        ..hold(Hold::None)
    };
    assert_eq!(answer(&commit, &unsure), None);
}

#[test]
fn a_scope_that_was_read_without_a_lease_must_be_free() {
    let mut commit = commit("r", Vec::new());
    commit.lease.token = Lease::SNAPSHOT;
    let hold = |is_same_attempt, has_expired| Snapshot {
        hold: Hold::By {
            token: 8,
            is_notified: false,
            is_same_attempt,
            has_expired,
        },
        ..known()
    };
    assert_eq!(answer(&commit, &hold(false, false)), REFUSED);
    assert_eq!(answer(&commit, &hold(false, true)), None);
    // It was carried out already, and its response was lost.
    assert_eq!(answer(&commit, &hold(true, false)), RELEASED);
    let still = Snapshot {
        is_suspended: true,
        hold: Hold::None,
        ..known()
    };
    assert_eq!(answer(&commit, &still), REFUSED);
}

#[test]
fn a_commit_must_be_based_on_the_stored_record() {
    let mut commit = commit("r", Vec::new());
    let record = |version| Snapshot {
        record: Some(Record {
            version,
            flags: Flags::default(),
            kib: 0,
        }),
        ..known()
    };
    assert_eq!(answer(&commit, &record(Some((4, 0)))), RELEASED);
    assert_eq!(answer(&commit, &record(None)), None);
    // The stamp matters if nobody held it meanwhile.
    commit.lease.token = Lease::SNAPSHOT;
    commit.lease.read_stamp = 5;
    let free = |version| Snapshot {
        hold: Hold::None,
        ..record(version)
    };
    assert_eq!(answer(&commit, &free(Some((3, 4)))), REFUSED);
    assert_eq!(answer(&commit, &free(Some((3, 5)))), None);
}

#[test]
fn a_closed_scope_can_only_end() {
    let closed = Snapshot {
        is_closed: true,
        ..known()
    };
    let mut commit = commit("r.1.0", Vec::new());
    assert_eq!(answer(&commit, &closed), RELEASED);
    commit.scope.cursor = Cursor::Ended;
    assert_eq!(answer(&commit, &closed), None);
}

#[test]
fn an_unknown_input_comes_first_if_asked() {
    let mut commit = commit("r", Vec::new());
    commit.require_unchanged_inbox = true;
    let handed = [item("call-1", Kind::Other, Some(TOKEN))];
    let new = [item("call-1", Kind::Other, None)];
    let items = |items| Snapshot {
        items: Some(items),
        ..known()
    };
    assert_eq!(answer(&commit, &items(&handed)), None);
    assert_eq!(answer(&commit, &items(&new)), Some(Answer::InboxChanged));
    let faulted = Snapshot {
        status: Status::Faulted,
        ..items(&handed)
    };
    assert_eq!(answer(&commit, &faulted), Some(Answer::InboxChanged));
    let closed = Snapshot {
        is_closed: true,
        ..items(&handed)
    };
    assert_eq!(answer(&commit, &closed), Some(Answer::InboxChanged));
}

#[test]
fn an_instance_has_a_size_limit_but_may_always_shrink() {
    let commit = commit("r", Vec::new());
    let full = |before, record| {
        let known = Snapshot {
            record: Some(Record {
                version: None,
                flags: Flags::default(),
                kib: before,
            }),
            size: Some(90 + before),
            ..known()
        };
        let size = Size {
            record,
            ..Size::default()
        };
        with_size(&commit, &known, size).err()
    };
    assert_eq!(full(0, 10), None);
    assert_eq!(full(0, 11), Some(Undecided::Answer(Answer::Full(10))));
    assert_eq!(full(30, 29), None);
    assert_eq!(full(30, 31), Some(Undecided::Answer(Answer::Full(30))));
}

#[test]
fn the_lease_is_kept_for_effects_and_new_inputs() {
    let mut commit = commit("r", Vec::new());
    let lease = |commit: &Commit, items: &[Item<'_>]| {
        let known = Snapshot {
            items: Some(items),
            ..known()
        };
        decided(commit, &known).unwrap().lease.is_released
    };
    let new = [item("call-2", Kind::Other, None)];
    assert!(lease(&commit, &[]) && !lease(&commit, &new));
    commit.consumed = vec!["call-2".to_owned()];
    assert!(lease(&commit, &new));
    commit.commands = vec![Command::SuspendAwaited];
    assert!(!lease(&commit, &new));
    commit.commands.clear();
    commit.release = false;
    assert!(!lease(&commit, &new));
}

#[test]
fn a_scope_without_a_lease_is_only_held_if_it_continues() {
    let mut commit = commit("r", Vec::new());
    commit.lease.token = Lease::SNAPSHOT;
    let new = [item("call-2", Kind::Other, None)];
    let free = Snapshot {
        hold: Hold::None,
        items: Some(&new),
        ..known()
    };
    let found = decided(&commit, &free).unwrap();
    assert!(found.lease.is_released && found.is_woken && found.has_work);
    commit.release = false;
    let found = decided(&commit, &free).unwrap();
    let taken = LeaseChange {
        is_released: false,
        is_taken: true,
        is_removed: false,
    };
    assert_eq!((found.lease, found.is_woken), (taken, false));
}

#[test]
fn only_operators_inputs_count_while_the_instance_stands_still() {
    let commit = commit("r", Vec::new());
    let work = |kind| {
        let items = [item("x", kind, Some(TOKEN))];
        let known = Snapshot {
            is_suspended: true,
            items: Some(&items),
            ..known()
        };
        decided(&commit, &known).unwrap().has_work
    };
    assert!(work(Kind::Operator) && !work(Kind::Event));
}

#[test]
fn nothing_stays_of_a_scope_that_is_gone() {
    let commit = commit("r.1.0", vec![Command::Drop]);
    let items = [item("event-1-0-e", Kind::Event, None)];
    let fork = Numbers {
        total: 1,
        open: 1,
        needed: 1,
        ..Numbers::default()
    };
    let known = Snapshot {
        items: Some(&items),
        timers: Some(&[1, 2]),
        forks: &[4, 5],
        enclosing: Some(&fork),
        ..known()
    };
    let found = decided(&commit, &known).unwrap();
    assert_eq!(
        (found.inbox.dropped, found.inbox.consumed),
        (vec![0], vec![])
    );
    assert_eq!(found.timers.unwrap().disarmed, [1, 2]);
    assert_eq!(found.forks.closes, [4, 5]);
    assert!(found.record.is_none() && found.ends_waits && found.lease.is_released);
    // It leaves no result, so the branch begins again.
    assert!(found.has_work);
    assert_eq!(found.branch.unwrap().live, -1);
}

/// The disarmed timers and the new ones. The scope has timers 1 and 11, and 1 is armed.
fn timers(consumed: &[&str], commands: Vec<Command>) -> Option<(Vec<u32>, Vec<Timer>)> {
    let mut commit = commit("r", commands);
    commit.scope.timers = vec![kit::timer(1, 9), kit::timer(11, 9)];
    commit.consumed = consumed.iter().map(|id| (*id).to_owned()).collect();
    let armed = Snapshot {
        timers: Some(&[1]),
        ..known()
    };
    let change = decided(&commit, &armed).unwrap().timers?;
    Some((change.disarmed, change.armed))
}

#[test]
fn a_new_timer_replaces_the_previous_one() {
    let (arm, again) = (kit::timer(2, 7), kit::timer(1, 8));
    let found = timers(&[], vec![Command::Disarm(1), Command::Arm(arm)]);
    assert_eq!(found, Some((vec![1], vec![arm])));
    let found = timers(&[], vec![Command::Arm(again)]);
    assert_eq!(found, Some((vec![1], vec![again])));
    let found = timers(&[], vec![Command::Arm(arm), Command::Disarm(2)]);
    assert_eq!(found, Some((vec![], vec![])));
}

#[test]
fn a_timer_that_fired_too_early_is_armed_again() {
    let found = timers(&["timer-11", "call-1"], Vec::new());
    assert_eq!(found, Some((vec![], vec![kit::timer(11, 9)])));
    assert_eq!(timers(&["call-1"], Vec::new()), None);
}

#[test]
fn what_isnt_known_is_asked_for() {
    let unsure = Snapshot {
        is_complete: false,
        timers: None,
        ..known()
    };
    let unknown = |command| {
        let commit = commit("r", vec![command]);
        decided(&commit, &unsure).err() == Some(Undecided::Unknown)
    };
    assert!(unknown(Command::Disarm(1)));
    assert!(unknown(Command::CloseFork(1)));
    assert!(!unknown(Command::SuspendAwaited));
}

fn own(live: u32, done: u32, errors: &[(u32, usize)]) -> OwnFork {
    OwnFork {
        fork: 1,
        numbers: Numbers {
            total: 3,
            open: 2,
            needed: 2,
            is_notified: true,
            notification_count: 1,
            done,
            failed: errors.len() as u32,
            live,
            bytes: 4096,
            ..Numbers::default()
        },
        base_kib: 5,
        errors: errors.to_vec(),
    }
}

#[test]
fn a_fork_is_removed_if_all_branches_are_gone_and_closed_otherwise() {
    let commit = commit("r", vec![Command::CloseFork(1)]);
    let closed = |own: OwnFork| {
        let known = Snapshot {
            forks: &[1],
            own_forks: std::slice::from_ref(&own),
            ..known()
        };
        let found = decided(&commit, &known).unwrap();
        let states: Vec<_> = found.forks.changed.iter().map(|fork| fork.state).collect();
        (
            states,
            found.forks.closes,
            found.forks.after.unwrap(),
            found.gain,
        )
    };
    assert_eq!(
        closed(own(0, 2, &[])),
        (vec![ForkState::Removed], vec![], vec![], -9)
    );
    assert_eq!(
        closed(own(1, 1, &[])),
        (vec![ForkState::Same], vec![1], vec![1], 0)
    );
}

#[test]
fn a_fork_that_begins_and_ends_with_the_commit_leaves_nothing() {
    let commands = vec![kit::fork("r", 2, 3, 3, 3), Command::CloseFork(2)];
    let commit = commit("r", commands);
    let found = decided(&commit, &known()).unwrap().forks;
    assert!(found.changed.is_empty() && found.begins.is_empty() && found.closes.is_empty());
}

#[test]
fn a_fork_that_is_extended_notifies_at_once_if_enough_are_done() {
    let extend = |needed| {
        let commands = vec![Command::ExtendFork {
            fork: 1,
            open: 9,
            needed,
        }];
        let commit = commit("r", commands);
        let own = [own(0, 2, &[])];
        let known = Snapshot {
            forks: &[1],
            own_forks: &own,
            ..known()
        };
        let found = decided(&commit, &known).unwrap();
        assert_eq!(found.forks.begins, [(1, 2..3)]);
        let ids = found.forks.joined.into_iter().map(|(_, item)| item.id);
        (ids.collect::<Vec<_>>(), found.lease.is_released)
    };
    assert_eq!(extend(3), (vec![], true));
    assert_eq!(extend(2), (vec!["fork-1-2".to_owned()], false));
}

#[test]
fn the_requested_branch_is_revived_before_the_others() {
    let revive = |others| {
        let commands = vec![Command::ReviveBranch {
            fork: 1,
            index: 1,
            input: Box::new(Input::Retry),
            others,
        }];
        let commit = commit("r", commands);
        let own = [own(0, 0, &[(0, 1024), (1, 1024)])];
        let known = Snapshot {
            forks: &[1],
            own_forks: &own,
            ..known()
        };
        let found = decided(&commit, &known).unwrap();
        let revived = found.forks.revived.iter().map(|branch| branch.index);
        (
            revived.collect::<Vec<_>>(),
            found.forks.joined.len(),
            found.gain,
        )
    };
    // The failure that is left is reported again.
    assert_eq!(revive(false), (vec![1], 1, -1));
    assert_eq!(revive(true), (vec![1, 0], 0, -2));
}

#[test]
fn a_result_that_is_too_large_is_a_failure() {
    let mut commit = commit("r.1.0", vec![Command::Report(kit::done())]);
    commit.scope.cursor = Cursor::Ended;
    let report = |bytes, is_closed| {
        let fork = Numbers {
            total: 2,
            open: 2,
            needed: 2,
            bytes: 90,
            most: 100,
            is_closed,
            ..Numbers::default()
        };
        let known = Snapshot {
            enclosing: Some(&fork),
            ..known()
        };
        let size = Size {
            result: Some(bytes),
            ..Size::default()
        };
        let found = with_size(&commit, &known, size).unwrap();
        let report = found.branch.unwrap().report;
        report.map(|report| (report.is_done, report.replaced.is_some()))
    };
    assert_eq!(report(10, false), Some((true, false)));
    assert_eq!(report(11, false), Some((false, true)));
    assert_eq!(report(10, true), None);
}

#[test]
fn an_end_comes_with_the_ends_of_children() {
    let commands = vec![
        Command::SuspendAwaited,
        Command::End {
            status: EndStatus::Faulted,
            output: None,
            error: None,
        },
    ];
    let commit = commit("r", commands);
    let parts = CommitParts::of(&commit);
    let effects = parts.effects([InstanceId::new("b")].into_iter());
    let end = Command::EndInstance {
        id: InstanceId::new("b"),
        status: EndStatus::Terminated,
    };
    let effects: Vec<Command> = effects
        .into_iter()
        .map(|effect| effect.into_owned())
        .collect();
    assert_eq!(effects, [Command::SuspendAwaited, end]);
    let found = decided(&commit, &known()).unwrap();
    assert!(found.stands_still && !found.is_over && !found.lease.is_released);
}
