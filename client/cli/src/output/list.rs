//! A list of records that is written while its pages come in, so that its length costs no memory.

use crate::output::table::{Column, Table};
use crate::output::tree::Tree;
use crate::output::{Format, yaml};
use std::io::{self, BufWriter, Stdout, Write};

/// A list under way. It is whole once [`List::finish`] was called.
#[derive(Debug)]
pub(crate) struct List<'a, W: Write = BufWriter<Stdout>> {
    format: Format,
    out: &'a mut W,
    name: &'static str,
    table: Table,
    written: bool,
}

impl<'a, W: Write> List<'a, W> {
    /// A list that goes by `name` in JSON and YAML, and has `columns` as a table.
    pub(crate) fn new(format: Format, out: &'a mut W, name: &'static str, columns: &[Column]) -> Self {
        let table = Table::new(columns, format == Format::Wide);
        Self { format, out, name, table, written: false }
    }

    /// Writes the records of one page.
    ///
    /// # Errors
    /// If stdout does not take them.
    pub(crate) fn page(&mut self, records: &[Tree]) -> io::Result<()> {
        match self.format {
            Format::Table | Format::Wide => self.table.rows(self.out, records)?,
            Format::Json => records.iter().try_for_each(|record| self.json(record))?,
            Format::Yaml => records.iter().try_for_each(|record| self.yaml(record))?,
        }
        self.out.flush()
    }

    /// Ends the list; `more` stands behind it in JSON and YAML.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn finish(mut self, more: &[(&'static str, Tree)]) -> io::Result<()> {
        match self.format {
            Format::Table | Format::Wide => self.table.rows(self.out, &[])?,
            Format::Json => {
                if !self.written {
                    write!(self.out, "{{\"{}\":[", self.name)?;
                }
                write!(self.out, "]")?;
                for (name, value) in more {
                    write!(self.out, ",\"{name}\":")?;
                    serde_json::to_writer(&mut *self.out, value)?;
                }
                writeln!(self.out, "}}")?;
            }
            Format::Yaml => {
                if !self.written {
                    writeln!(self.out, "{}: []", self.name)?;
                }
                for (name, value) in more {
                    yaml::named(self.out, name, value, 0)?;
                }
            }
        }
        self.written = true;
        self.out.flush()
    }

    fn json(&mut self, record: &Tree) -> io::Result<()> {
        if self.written {
            write!(self.out, ",\n ")?;
        } else {
            write!(self.out, "{{\"{}\":[", self.name)?;
        }
        self.written = true;
        Ok(serde_json::to_writer(&mut *self.out, record)?)
    }

    fn yaml(&mut self, record: &Tree) -> io::Result<()> {
        if !self.written {
            writeln!(self.out, "{}:", self.name)?;
        }
        self.written = true;
        yaml::item(self.out, record, 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::output::tree::Map;

    const COLUMNS: &[Column] = &[Column::new("NAME", "name")];

    fn written(format: Format, pages: &[&[&str]]) -> String {
        let mut out = Vec::new();
        let mut list = List::new(format, &mut out, "groups", COLUMNS);
        for page in pages {
            let records: Vec<_> = page.iter().map(|name| Map::new().with("name", *name).done()).collect();
            list.page(&records).unwrap();
        }
        list.finish(&[("balanced", Tree::Bool(true))]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_json_list_is_one_document_over_all_its_pages() {
        let text = written(Format::Json, &[&["a", "b"], &[], &["c"]]);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["groups"][2]["name"], "c");
        assert_eq!(value["balanced"], true);
        assert_eq!(written(Format::Json, &[]), "{\"groups\":[],\"balanced\":true}\n");
    }

    #[test]
    fn a_yaml_list_is_one_document_too() {
        assert_eq!(written(Format::Yaml, &[&["a"], &["b"]]), "groups:\n- name: a\n- name: b\nbalanced: true\n");
        assert_eq!(written(Format::Yaml, &[]), "groups: []\nbalanced: true\n");
    }

    #[test]
    fn a_table_has_its_titles_even_without_records() {
        assert_eq!(written(Format::Table, &[]), "NAME\n");
        assert_eq!(written(Format::Table, &[&["a"], &["b"]]), "NAME\na\nb\n");
    }
}
