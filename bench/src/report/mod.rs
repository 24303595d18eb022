//! What was measured, for people and for machines.

mod machine;
mod measured;
mod table;

pub(crate) use machine::Machine;
#[cfg(test)]
pub(crate) use measured::Percentiles;
pub(crate) use measured::{CpuUsed, Figure, Measured, Ratio, Run};

use crate::workload::Pattern;
use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};

/// How figures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Table,
    /// One JSON document
    Json,
}

/// All that one call of the program measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The verb.
    pub(crate) verb: &'static str,
    /// Where.
    pub(crate) machine: Machine,
    /// What was published, and how.
    pub(crate) pattern: Pattern,
    /// How often each was run.
    pub(crate) runs: u32,
    /// The figures.
    pub(crate) measured: Vec<Measured>,
    /// What was compared.
    pub(crate) ratios: Vec<Ratio>,
}

impl Report {
    /// Shows it.
    ///
    /// # Errors
    /// If `out` does not take it.
    pub(crate) fn show(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Table => table::show(self, out),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
        }
    }
}
