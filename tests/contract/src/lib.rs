//! The contract of the ports, as tests that every backend must pass.
//!
//! Each case gets a fresh backend, and panics if the backend violates the contract of the ports. [`suite!`] creates a
//! `#[test]` for each case, so every backend runs each case in the list.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a case is a test")]

use std::any::Any;
use std::sync::Arc;

use swirl_ports::{
    AuditLog, Batches, Definitions, EventLog, JoinLimits, KeptBytes, SavedViews, SetsBytes, Store,
};

pub mod attributes;
pub mod audit;
pub mod batches;
pub mod branches;
pub mod business_keys;
pub mod definitions;
pub mod events;
pub mod expiry;
pub mod first_turn;
pub mod forks;
pub mod history;
pub mod joins;
pub mod kit;
pub mod lazy;
pub mod leases;
pub mod lifecycle;
pub mod listings;
pub mod migration;
pub mod offers;
pub mod pending_starts;
pub mod reuse;
pub mod sets;
pub mod starts;
pub mod timers;
pub mod trends;
pub mod views;

/// The size limit of instances in the tested backends.
pub const INSTANCE_BYTES: usize = 100 << 10;

/// The limits beyond which the tested backends leave forks to coordinators.
pub const JOIN_LIMITS: JoinLimits = JoinLimits {
    results: 10,
    bytes: 20_000,
};

/// The limits on the sizes of kept events in the tested backends.
pub const KEPT_BYTES: KeptBytes = KeptBytes {
    all: 40_000,
    workflow: 27_000,
    kind: 20_000,
};

/// The limits on the sizes of incomplete sets of events in the tested backends.
pub const SETS_BYTES: SetsBytes = SetsBytes {
    all: 27_000,
    workflow: 20_000,
};

/// An empty backend.
pub struct Backend {
    pub store: Arc<dyn Store>,
    pub events: Arc<dyn EventLog>,
    pub definitions: Arc<dyn Definitions>,
    pub batches: Arc<dyn Batches>,
    pub audit: Arc<dyn AuditLog>,
    pub views: Arc<dyn SavedViews>,
    /// A folder or a server that must live as long as the backend.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Backend {
    /// Creates a backend from a single value that implements all ports.
    pub fn of<S>(store: Arc<S>, guard: impl Any + Send + Sync) -> Backend
    where
        S: Store + EventLog + Definitions + Batches + AuditLog + SavedViews + 'static,
    {
        Backend {
            store: store.clone(),
            events: store.clone(),
            definitions: store.clone(),
            batches: store.clone(),
            audit: store.clone(),
            views: store,
            guard: Box::new(guard),
        }
    }
}

/// Creates a `#[test]` for each case. `$make` creates a [`Backend`], `$run` runs a future to its end.
///
/// With `@one` before `$make`, all cases form one test, for backends that are slow to start. `$make` may then give each
/// case a part of the same server.
#[macro_export]
macro_rules! suite {
    (@$mode:ident $make:expr, $run:expr) => {
        $crate::store_suite!(@$mode $make, $run);
        $crate::event_suite!(@$mode $make, $run);
    };
    ($make:expr, $run:expr) => {
        $crate::suite!(@each $make, $run);
    };
}

/// The cases for the store alone; see [`suite!`].
#[macro_export]
macro_rules! store_suite {
    (@$mode:ident $make:expr, $run:expr) => {
        $crate::cases! { @$mode store_cases, $make, $run,
            leases {
                a_scope_has_a_single_holder, attempts_count_until_the_record_changes, commits_need_the_lease_and_the_revision,
                inputs_are_delivered_once_and_in_order, a_new_input_keeps_the_lease,
                a_waiting_holder_is_woken, missing_scopes_accept_nothing,
                a_commit_can_release_the_lease, an_unsure_commit_gets_new_inputs
            }
            lifecycle {
                a_key_identifies_one_instance, suspended_instances_do_not_continue,
                a_suspension_replaces_an_earlier_one,
                an_end_closes_remaining_work, null_is_an_output, faulted_instances_continue_after_a_retry,
                children_end_with_their_parent, the_outbox_stays_until_flushed,
                ended_and_faulted_instances_are_removed, ended_scopes_are_not_listed, history_is_appended, history_entries_can_be_added,
                detached_scopes_outlive_the_instance, runnable_scopes_are_found
            }
            history { history_is_read_in_parts, large_entries_lead_to_short_parts, recorded_data_is_removed_before_its_entries }
            listings { listings_are_newest_first, named_instances_are_listed, pages_state_their_position, instances_are_counted, instances_are_counted_by_version, rows_have_a_bounded_size }
            trends { starts_and_ends_are_counted_once, durations_of_completed_instances_are_added }
            attributes {
                instances_are_found_by_attributes, attributes_follow_the_instance,
                pages_by_attribute_state_their_position
            }
            batches {
                a_batch_keeps_its_instances, so_many_batches_are_active, outcomes_are_recorded_in_order_and_once, batches_are_paused_and_stopped,
                batches_are_listed_and_dropped, one_carrier_runs_a_batch, a_marked_action_is_carried_out_once
            }
            audit { entries_are_listed_newest_first, old_entries_make_room }
            views { views_are_saved_and_removed, the_number_of_views_is_bounded }
            migration {
                an_instance_moves_as_a_whole, an_instance_that_changes_is_not_moved,
                a_reader_of_the_former_version_commits_nothing, waits_follow_the_version,
                a_marked_migration_is_carried_out_once, a_failed_instance_moves
            }
            business_keys { a_key_moves_between_instances, keys_are_kept_apart }
            reuse { a_reused_id_keeps_nothing_of_the_former_instance }
            definitions { definitions_are_immutable, definitions_are_replaced }
            first_turn {
                a_first_turn_may_end_an_instance, an_instance_with_a_first_turn_may_exist_already,
                effects_of_a_first_turn_stay_until_flushed, a_first_turn_may_wait,
                a_first_turn_gets_events_since_the_start,
                a_first_turn_does_not_get_its_start_events_again
            }
            lazy {
                the_first_commit_wins, a_continuing_reader_acquires_the_lease,
                a_holder_is_not_disturbed, inputs_between_read_and_commit_are_not_lost,
                a_continuing_reader_gets_later_inputs,
                nothing_begins_in_a_suspended_instance, a_branch_can_be_read_without_a_lease,
                branches_can_be_read_one_after_another,
                a_call_in_flight_is_acquired,
                a_delivered_event_is_read_with_its_scope, an_outdated_delivery_is_refused,
                a_delivery_to_a_held_scope_is_not_read
            }
            branches { branches_keep_their_data }
            forks {
                branches_join_once, a_failed_branch_is_reported_at_once, a_closed_fork_cancels_the_rest,
                batches_open_more_branches, a_fork_may_need_less_for_a_while, a_failed_branch_is_revived,
                a_batch_reports_the_number_of_results, a_failure_is_reported_again, all_failed_branches_are_revived,
                another_failed_branch_is_reported, only_failed_branches_are_revived, results_share_a_limit,
                the_scopes_of_an_instance_share_a_limit, waiting_inputs_count,
                branches_of_branches_are_closed_too
            }
            joins {
                few_results_come_with_the_inbox, many_results_are_left_to_a_coordinator,
                large_results_are_left_to_a_coordinator, a_batch_is_not_a_join, a_failure_among_many_goes_to_the_worker,
                some_of_many_are_enough, a_fork_of_a_branch_is_joined, a_holder_gets_the_results
            }
            timers {
                due_in_order_until_disarmed, a_fired_timer_waits_in_the_inbox,
                an_earlier_timer_is_noticed, ended_scopes_have_no_timers
            }
        }
    };
    ($make:expr, $run:expr) => {
        $crate::store_suite!(@each $make, $run);
    };
}

/// The cases for events; see [`suite!`].
#[macro_export]
macro_rules! event_suite {
    (@$mode:ident $make:expr, $run:expr) => {
        $crate::cases! { @$mode event_cases, $make, $run,
            offers {
                an_offering_slot_stays_open, an_offer_has_the_further_attributes,
                all_offering_waits_of_an_instance_get_an_event,
                an_offered_event_is_consumed_when_it_is_taken, early_events_are_offered_once,
                a_taken_event_is_not_offered_to_a_later_wait,
                an_event_that_is_kept_for_others_is_consumed_when_it_is_taken,
                a_kept_event_is_offered_to_all_that_begin, a_queue_counts_for_its_instance,
                a_suspended_instance_is_offered_no_more_than_it_may_hold,
                a_resumed_instance_is_offered_what_it_had_no_room_for,
                offers_teach_an_instance_nothing, a_set_shares_the_values_of_its_events
            }
            events {
                an_event_reaches_waiting_instances, a_slot_takes_one_event, correlation_is_learnt,
                early_events_are_kept, an_event_is_known_for_a_limited_time, a_used_event_is_not_early, events_without_correlation_are_not_kept,
                an_early_event_goes_to_an_instance_without_values, an_addressed_event,
                an_event_is_known_once_confirmed, an_unconfirmed_event_has_the_same_outcome,
                unused_events_become_available_again, a_refused_commit_returns_no_events,
                an_event_of_a_closed_branch_is_free, events_expire,
                an_event_is_searched_where_definitions_wait,
                kept_events_have_limited_sizes, kept_events_go_with_their_definition
            }
            sets {
                incomplete_sets_have_limited_sizes, incomplete_sets_go_with_their_definition
            }
            starts {
                each_event_starts_one, a_correlated_event_continues, an_event_during_a_start,
                a_start_counts_as_consumed, a_starting_event_is_not_early,
                a_starting_instance_counts_as_existing, a_set_of_events_starts_one,
                a_list_of_events_starts_one, events_end_a_list, lists_of_concurrent_events,
                a_list_follows_a_newer_definition,
                sets_keep_correlations_apart, sets_of_unlike_rules, a_constant_binds_nothing,
                a_faulted_instance_is_over, a_set_is_dropped_when_late,
                an_expression_decides_when_a_set_is_complete, a_start_by_one_event_is_not_changed,
                an_instance_does_not_get_its_starting_event_again
            }
        }
    };
    ($make:expr, $run:expr) => {
        $crate::event_suite!(@each $make, $run);
    };
}

/// The cases for backends with expiring leases; see [`suite!`].
#[macro_export]
macro_rules! expiry_suite {
    (@$mode:ident $make:expr, $run:expr) => {
        $crate::cases! { @$mode expiry_cases, $make, $run,
            expiry {
                an_expired_lease_is_taken_over, a_renewed_lease_stays,
                a_late_holder_without_a_successor_continues,
                a_holder_that_takes_no_input_loses_its_lease
            }
        }
    };
    ($make:expr, $run:expr) => {
        $crate::expiry_suite!(@each $make, $run);
    };
}

/// The cases for backends that are not reopened between steps; see [`suite!`].
#[macro_export]
macro_rules! pending_suite {
    (@$mode:ident $make:expr, $run:expr) => {
        $crate::cases! { @$mode pending_cases, $make, $run,
            pending_starts {
                pending_starts_are_bounded_by_workflow, pending_starts_are_bounded_together,
                a_pending_start_counts_once, a_forgotten_start_is_uncounted
            }
        }
    };
    ($make:expr, $run:expr) => {
        $crate::pending_suite!(@each $make, $run);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! cases {
    (@each $name:ident, $make:expr, $run:expr, $($module:ident { $($case:ident),+ })+) => {
        $(mod $module {
            use super::*;
            $(#[test]
            fn $case() {
                $run($crate::$module::$case($make));
            })+
        })+
    };
    (@one $name:ident, $make:expr, $run:expr, $($module:ident { $($case:ident),+ })+) => {
        #[test]
        fn $name() {
            // The shared backend lives until the last case has ended.
            let _kept = $make;
            $($($run($crate::$module::$case($make));)+)+
        }
    };
}
