//! Each way to break the journal by hand is found within 50 seeds; were one not, the simulation would prove little.

use super::broken::LeftOut;
use super::lives::{Mutation, run};
use super::power_cuts::ALWAYS;
use crate::journal::config::Flaw;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SEEDS: u64 = 50;

fn is_found(mutation: Mutation) {
    let found = (0..SEEDS).find(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, ALWAYS, Some(mutation)))).is_err());
    assert!(found.is_some(), "{mutation:?} was not noticed in {SEEDS} seeds");
}

#[test]
fn a_sync_left_out_is_noticed() {
    is_found(Mutation::Step(LeftOut::Sync));
}

#[test]
fn a_folder_not_synced_is_noticed() {
    is_found(Mutation::Step(LeftOut::FolderSync));
}

#[test]
fn a_sum_not_checked_is_noticed() {
    is_found(Mutation::SumsUnchecked);
}

#[test]
fn a_cut_that_does_not_truncate_is_noticed() {
    is_found(Mutation::Step(LeftOut::Truncation));
}

#[test]
fn a_truncation_that_is_not_synced_is_noticed() {
    is_found(Mutation::Step(LeftOut::TruncationSync));
}

#[test]
fn a_tail_that_is_kept_and_not_synced_is_noticed() {
    is_found(Mutation::Step(LeftOut::TailSync));
}

#[test]
fn a_page_cache_that_is_believed_after_a_failed_sync_is_noticed() {
    is_found(Mutation::Step(LeftOut::FailureOfSync));
}

#[test]
fn a_read_that_is_not_held_back_is_noticed() {
    is_found(Mutation::Writer(Flaw::ReadsNotHeldBack));
}

#[test]
fn a_witness_left_out_is_noticed() {
    is_found(Mutation::Writer(Flaw::NoWitness));
}

#[test]
fn a_spare_that_is_used_before_its_folder_is_synced_is_noticed() {
    is_found(Mutation::Step(LeftOut::SpareFolderSync));
}
