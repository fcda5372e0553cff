//! Writes the results, for programs (JSON) and for people (tables).

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::bench::describe;
use crate::field::{Field, Spread};
use crate::floor::Floors;
use crate::machine::{Facts, Setting};
use crate::row::Row;

/// A run of the whole program.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) setting: Setting,
    pub(crate) floor: Floors,
    pub(crate) results: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skipped: Vec<Skipped>,
}

/// A peer that could not be measured, or only in part.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) peer: String,
    pub(crate) reason: String,
}

impl Report {
    /// Prints everything as tables.
    pub(crate) fn print(&self) {
        print_facts("machine", &self.setting.machine);
        print_facts("redis", &self.setting.redis);
        print_facts("software", &self.setting.software);
        let mut names: Vec<&str> = self.results.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        // The columns are in the order in which each name first appears.
        names.sort_by_key(|name| self.results.iter().position(|row| row.name == *name));
        for name in names {
            let rows: Vec<&Row> = self.results.iter().filter(|row| row.name == name).collect();
            println!("\n{name}\n{}", table(&rows));
        }
        self.print_floor();
        for Skipped { peer, reason } in &self.skipped {
            println!("\n{peer} was skipped: {reason}");
        }
    }

    fn print_floor(&self) {
        if self.floor.is_empty() {
            return;
        }
        let mut table = plain_table();
        table.set_header(["floor", "us of Redis' processor for each record, or calls/s"]);
        for (name, spread) in &self.floor {
            table.add_row([(*name).to_owned(), cell(*spread)]);
        }
        println!("\n{table}");
    }
}

fn print_facts(title: &str, facts: &Facts) {
    let facts: Vec<String> = facts.iter().map(|(name, fact)| format!("{name}: {fact}")).collect();
    println!("{title:<9} {}", facts.join(" · "));
}

/// Returns the table. It has a column for each value that any row has, and its cells contain the
/// median, the minimum and the maximum.
fn table(rows: &[&Row]) -> Table {
    let mut fields: Vec<Field> = rows.iter().flat_map(|row| row.values.keys().copied()).collect();
    fields.sort_unstable();
    fields.dedup();
    let peers = rows.iter().any(|row| row.peer.is_some());
    let mut table = plain_table();
    let mut header: Vec<String> = fields.iter().map(|field| field.heading().to_owned()).collect();
    header.insert(0, "parameters".to_owned());
    if peers {
        header.insert(0, "queue".to_owned());
    }
    table.set_header(header);
    for row in rows {
        let mut cells: Vec<String> = Vec::new();
        if peers {
            cells.push(row.peer.clone().unwrap_or_else(|| "optimus".to_owned()));
        }
        cells.push(describe(&row.params));
        let values = fields.iter().map(|field| row.values.get(field));
        cells.extend(values.map(|spread| spread.map_or(String::new(), |spread| cell(*spread))));
        table.add_row(cells);
    }
    let numbers = table.column_count() - fields.len()..;
    for column in table.column_iter_mut().skip(numbers.start) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn plain_table() -> Table {
    let mut table = Table::new();
    // The tables have a form that a page of the documentation can include unchanged.
    table.load_style(presets::ASCII_MARKDOWN);
    table
}

fn cell(spread: Spread) -> String {
    let Spread { min, median, max } = spread;
    if number(min) == number(max) {
        return number(median);
    }
    format!("{} ({}..{})", number(median), number(min), number(max))
}

/// Returns three digits, or all digits of a whole number with separated thousands.
fn number(value: f64) -> String {
    let size = value.abs();
    if size < 100.0 {
        let decimals = match size {
            10.0.. => 1,
            1.0.. => 2,
            _ => 3,
        };
        return format!("{value:.decimals$}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digit.is_ascii_digit() && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text.replace("-,", "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Sample;
    use crate::row::params;

    #[test]
    fn numbers_are_short_and_have_separated_thousands() {
        let shown = [0.004_56, 1.234, 12.34, 999.6, 150_000.0, -123_456.0].map(number);
        assert_eq!(shown, ["0.005", "1.23", "12.3", "1,000", "150,000", "-123,456"]);
    }

    #[test]
    fn a_table_has_the_columns_that_its_rows_have_and_names_the_peers() {
        let run = Sample::new().with(Field::TasksPerS, 5.0);
        let ours = Row::of_runs("drain", params([("in_flight", 1.into())]), &[run]);
        let text = table(&[&ours]).to_string();
        assert!(text.contains("tasks/s") && !text.contains("p50"), "{text}");
        assert!(!text.contains("optimus") && text.contains("in_flight=1"), "{text}");
        let theirs = ours.clone().of_peer("sidekiq");
        let text = table(&[&ours, &theirs]).to_string();
        assert!(text.contains("optimus") && text.contains("sidekiq"), "{text}");
    }
}
