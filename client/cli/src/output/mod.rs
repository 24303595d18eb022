//! How data is shown: one [`Tree`] of named values a record, written as a table, as JSON or as YAML.
//!
//! What the verbs hand over is the same for every format, so the documented JSON is all there is to know of a record;
//! a table shows some of it, `wide` shows more.

pub(crate) mod escape;
mod list;
mod table;
mod time;
mod tree;
mod yaml;

pub(crate) use list::List;
pub(crate) use table::Column;
pub(crate) use tree::{Map, Tree};

use std::io::{self, BufWriter, Stdout, Write};

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// More columns
    Wide,
    /// One JSON document, stable and documented
    Json,
    /// The same as YAML
    Yaml,
}

/// Where data goes: stdout, in one format.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
    out: BufWriter<Stdout>,
}

impl Output {
    /// Writes to stdout in `format`.
    pub(crate) fn new(format: Format) -> Self {
        Self { format, out: BufWriter::new(io::stdout()) }
    }

    /// Whether a person looks at it who asked for no details.
    pub(crate) fn is_table(&self) -> bool {
        self.format == Format::Table
    }

    /// Shows one record.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn one(&mut self, record: &Tree) -> io::Result<()> {
        match self.format {
            Format::Json => json(&mut self.out, record)?,
            Format::Yaml => yaml::document(&mut self.out, record)?,
            Format::Table | Format::Wide => table::details(&mut self.out, record)?,
        }
        self.out.flush()
    }

    /// Begins a list of records that goes by `name` in JSON and YAML.
    pub(crate) fn list(&mut self, name: &'static str, columns: &'static [Column]) -> List<'_> {
        List::new(self.format, &mut self.out, name, columns)
    }

    /// Writes one line of JSON at once, whatever the format.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn json_line(&mut self, record: &Tree) -> io::Result<()> {
        json(&mut self.out, record)?;
        self.out.flush()
    }
}

fn json(out: &mut impl Write, record: &Tree) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
    writeln!(out)
}
