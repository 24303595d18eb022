//! Columns for people.

use crate::output::escape;
use crate::output::time::rfc3339;
use crate::output::tree::Tree;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr as _;

/// A column of a table: what it is called and which value of a record it shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    path: &'static str,
    wide: bool,
    words: bool,
}

impl Column {
    /// A column shown always.
    pub(crate) const fn new(title: &'static str, path: &'static str) -> Self {
        Self { title, path, wide: false, words: false }
    }

    /// A column shown in the wide format only.
    pub(crate) const fn wide(title: &'static str, path: &'static str) -> Self {
        Self { title, path, wide: true, words: false }
    }

    /// A last column of words, which need no quotes.
    pub(crate) const fn words(title: &'static str, path: &'static str) -> Self {
        Self { title, path, wide: false, words: true }
    }

    fn cell(&self, record: &Tree) -> Cell {
        let value = record.at(self.path);
        if self.words { Cell::of_words(self.path, value) } else { Cell::new(self.path, value) }
    }

    /// Where in a record its value lies.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }
}

/// A table that is written page by page: its columns keep their widths, and grow where a later page needs it.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    widths: Vec<usize>,
    headed: bool,
}

impl Table {
    /// The columns of `all` that the format shows.
    pub(crate) fn new(all: &[Column], wide: bool) -> Self {
        let columns: Vec<_> = all.iter().filter(|column| wide || !column.wide).copied().collect();
        let widths = columns.iter().map(|column| column.title.width()).collect();
        Self { columns, widths, headed: false }
    }

    /// Writes the records of one page, and the titles before the first.
    pub(crate) fn rows(&mut self, out: &mut impl Write, records: &[Tree]) -> io::Result<()> {
        let rows: Vec<Vec<Cell>> =
            records.iter().map(|record| self.columns.iter().map(|column| column.cell(record)).collect()).collect();
        for row in &rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        if !self.headed {
            self.headed = true;
            let of_numbers = |place: usize| rows.first().and_then(|row| row.get(place)).is_some_and(|cell| cell.right);
            let titles: Vec<_> = self
                .columns
                .iter()
                .enumerate()
                .map(|(place, column)| Cell { text: column.title.to_owned(), right: of_numbers(place) })
                .collect();
            self.line(out, &titles)?;
        }
        rows.iter().try_for_each(|row| self.line(out, row))
    }

    fn line(&self, out: &mut impl Write, cells: &[Cell]) -> io::Result<()> {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&self.widths) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let padding = " ".repeat(width.saturating_sub(cell.text.width()));
            if cell.right {
                line.push_str(&padding);
                line.push_str(&cell.text);
            } else {
                line.push_str(&cell.text);
                line.push_str(&padding);
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// Writes one record as lines of name and value.
pub(crate) fn details(out: &mut impl Write, record: &Tree) -> io::Result<()> {
    let mut lines = Vec::new();
    flatten(String::new(), record, &mut lines);
    let width = lines.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    for (name, value) in lines {
        let padding = " ".repeat(width - name.width());
        writeln!(out, "{name}{padding}  {value}")?;
    }
    Ok(())
}

fn flatten(path: String, value: &Tree, lines: &mut Vec<(String, String)>) {
    let below = |name: &str| match path.as_str() {
        "" => escape::cell(name),
        path => format!("{path}.{}", escape::cell(name)),
    };
    match value {
        Tree::Map(entries) if !entries.is_empty() => {
            for (name, value) in entries {
                flatten(below(name), value, lines);
            }
        }
        Tree::List(items) if items.iter().any(|item| matches!(item, Tree::Map(_))) => {
            for (place, item) in items.iter().enumerate() {
                flatten(format!("{path}[{place}]"), item, lines);
            }
        }
        value => {
            let text = Cell::of_words(&path, value).text;
            lines.push((path, text));
        }
    }
}

#[derive(Debug)]
struct Cell {
    text: String,
    right: bool,
}

impl Cell {
    fn new(path: &str, value: &Tree) -> Self {
        match value {
            Tree::Number(0) if path.ends_with("_unix_ms") => Self::left("-"),
            Tree::Number(at) if path.ends_with("_unix_ms") => Self::left(rfc3339(*at)),
            Tree::Number(number) => Self { text: number.to_string(), right: true },
            value => Self::left(words(value)),
        }
    }

    fn of_words(path: &str, value: &Tree) -> Self {
        match value {
            Tree::Text(text) => Self::left(escape::words(text)),
            value => Self::new(path, value),
        }
    }

    fn left(text: impl Into<String>) -> Self {
        Self { text: text.into(), right: false }
    }
}

fn words(value: &Tree) -> String {
    match value {
        Tree::Null => "-".to_owned(),
        Tree::Bool(true) => "yes".to_owned(),
        Tree::Bool(false) => "no".to_owned(),
        Tree::Number(number) => number.to_string(),
        Tree::Text(text) => escape::cell(text),
        Tree::Raw(json) => escape::controls(json.get()),
        Tree::List(items) if items.is_empty() => "-".to_owned(),
        Tree::List(items) => items.iter().map(words).collect::<Vec<_>>().join(","),
        Tree::Map(entries) => {
            // Counts by cause: those of 0 would only hide the others.
            let told = entries.iter().filter(|(_, value)| *value != Tree::Number(0));
            let pairs: Vec<_> = told.map(|(name, value)| format!("{}={}", escape::cell(name), words(value))).collect();
            if pairs.is_empty() { "-".to_owned() } else { pairs.join(",") }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::output::tree::Map;

    const COLUMNS: &[Column] = &[
        Column::new("GROUP", "name"),
        Column::new("DEPTH", "depth"),
        Column::new("CREATED", "created_unix_ms"),
        Column::wide("SELECTOR", "settings.selector"),
    ];

    fn record(name: &str, depth: u64) -> Tree {
        Map::new()
            .with("name", name)
            .with("depth", depth)
            .with("created_unix_ms", 0_u64)
            .with("settings", Map::new().with("selector", "*:*"))
            .done()
    }

    fn shown(table: &mut Table, records: &[Tree]) -> String {
        let mut out = Vec::new();
        table.rows(&mut out, records).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_stand_right_and_wide_columns_only_where_asked_for() {
        let records = [record("audit", 7), record("refund desk", 12345)];
        assert_eq!(
            shown(&mut Table::new(COLUMNS, false), &records),
            "GROUP          DEPTH  CREATED\naudit              7  -\n\"refund desk\"  12345  -\n"
        );
        assert!(shown(&mut Table::new(COLUMNS, true), &records).contains("SELECTOR\n"));
    }

    #[test]
    fn a_name_with_controls_stays_in_its_cell() {
        let table = shown(&mut Table::new(COLUMNS, false), &[record("a\u{1b}[31m\nb", 1)]);
        assert!(!table.contains('\u{1b}'));
        assert_eq!(table.lines().count(), 2);
        assert!(table.contains(r"a\u{1b}[31m\nb"));
    }

    #[test]
    fn counts_by_cause_leave_out_what_did_not_happen() {
        let causes = Map::new().with("done", 2_u64).with("discarded", 0_u64).with("sought", 1_u64);
        assert_eq!(words(&causes.done()), "done=2,sought=1");
        assert_eq!(words(&Map::new().with("done", 0_u64).done()), "-");
    }

    #[test]
    fn broad_characters_count_twice() {
        let table = shown(&mut Table::new(&COLUMNS[..2], false), &[record("日本", 1), record("abcde", 2)]);
        assert_eq!(table, "GROUP  DEPTH\n日本       1\nabcde      2\n");
    }

    #[test]
    fn titles_come_once_and_also_for_no_records() {
        let mut table = Table::new(COLUMNS, false);
        assert_eq!(shown(&mut table, &[]), "GROUP  DEPTH  CREATED\n");
        assert_eq!(shown(&mut table, &[record("g", 1)]).lines().count(), 1);
    }

    #[test]
    fn one_record_is_a_list_of_names_and_values() {
        let mut out = Vec::new();
        let tree = Map::new()
            .with("state", "SERVING")
            .with("at_unix_ms", 1_716_120_001_700_u64)
            .with("failure", Tree::Null)
            .with("story", vec![Map::new().with("text", "began")])
            .done();
        details(&mut out, &tree).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "state          SERVING\nat_unix_ms     2024-05-19T12:00:01.700Z\nfailure        -\nstory[0].text  began\n"
        );
    }
}
