//! Draws a page: [`draw`].

use std::{fmt::Write as _, time::Duration};

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Paragraph, Row as Drawn, Table as Drawing, TableState},
};

use super::{
    number, process_table,
    seen::Seen,
    table::{Cell, Column, Row, Table, clean},
    view::{Colors, Page, View},
};
use crate::output::{paint::Tone, text};

const KEYS: &str = "q leave  tab page  s order  / filter  j k move";
/// The most lines for what a process runs.
const RUNNING_LINES: u16 = 10;
/// The narrowest column that takes the rest. Others give way.
const REST_MIN: u16 = 12;
/// What is older than this says how old it is.
const OLD: Duration = Duration::from_secs(10);

pub(super) fn draw(frame: &mut Frame, view: &mut View, seen: &Seen) {
    let table = view.table(seen);
    let has_problem = seen.problem.is_some();
    let [head, tabs, body, problem, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(u16::from(has_problem)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let paint = |tone| style(tone, view.colors);
    frame.render_widget(Line::styled(summary(seen), paint(Tone::Head)), head);
    frame.render_widget(page_line(view, &table), tabs);
    if let Some(why) = &seen.problem {
        let age = text::duration(seen.at.elapsed());
        let line = format!("These are the numbers of {age} ago: {}", clean(why));
        frame.render_widget(Line::styled(line, paint(Tone::Bad)), problem);
    }
    frame.render_widget(Line::styled(footer(view), paint(Tone::Pale)), foot);
    draw_body(frame, view, seen, &table, body);
}

fn draw_body(frame: &mut Frame, view: &mut View, seen: &Seen, table: &Table, area: Rect) {
    let is_of_processes = view.page() == Page::Processes;
    let lower = if is_of_processes { RUNNING_LINES.min(area.height / 2) } else { 0 };
    let [upper, lower] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(lower)]).areas(area);
    let height = usize::from(upper.height.saturating_sub(1));
    let keys = table.rows.iter().map(|row| row.key.as_str());
    let (shown, at) = view.place().settle(keys, height);
    let chosen = at.checked_sub(shown.start).filter(|_| !shown.is_empty());
    draw_table(frame, table, &table.rows[shown], chosen, upper, view.colors);
    let process = table.rows.get(at).filter(|_| is_of_processes);
    if let Some(running) = process.and_then(|row| process_table::running(seen, &row.key)) {
        let room = usize::from(lower.height.saturating_sub(1)).min(running.rows.len());
        draw_table(frame, &running, &running.rows[..room], None, lower, view.colors);
    }
}

fn draw_table(
    frame: &mut Frame,
    table: &Table,
    rows: &[Row],
    chosen: Option<usize>,
    area: Rect,
    colors: Colors,
) {
    let (columns, rest) = fitting(table.columns, area.width);
    let paint = |tone| style(tone, colors);
    let cell = |column: &Column, cell: &Cell| {
        let text = cell.within(column.width.unwrap_or(rest));
        let line = Line::from(Span::styled(text, paint(cell.tone)));
        if column.is_number { line.right_aligned() } else { line }
    };
    let title =
        |(_, column): &(usize, Column)| cell(column, &Cell::new(column.title).tone(Tone::Head));
    let head = Drawn::new(columns.iter().map(title).collect::<Vec<_>>());
    let drawn = rows.iter().map(|row| {
        let cells = columns.iter().map(|(place, column)| cell(column, &row.cells[*place]));
        Drawn::new(cells.collect::<Vec<_>>())
    });
    let widths = columns.iter().map(|(_, column)| Constraint::Length(column.width.unwrap_or(rest)));
    let drawing = Drawing::new(drawn, widths)
        .header(head)
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(chosen);
    frame.render_stateful_widget(drawing, area, &mut state);
    if table.rows.is_empty() && area.height > 1 {
        let none = if table.all == 0 { table.none } else { "No row has this text." };
        let below = Rect { y: area.y + 1, height: 1, ..area };
        frame.render_widget(Paragraph::new(none).style(paint(Tone::Pale)), below);
    }
}

/// Returns the columns that a terminal of this width has room for, with their places, and the width
/// of the one that takes the rest.
fn fitting(columns: &[Column], width: u16) -> (Vec<(usize, Column)>, u16) {
    let shown = columns.iter().copied().enumerate().filter(|(_, column)| column.from <= width);
    let mut shown: Vec<(usize, Column)> = shown.collect();
    loop {
        let taken: u16 =
            shown.iter().map(|(_, column)| column.width.map_or(0, |width| width + 1)).sum();
        let rest = width.saturating_sub(taken);
        let last = shown.iter().rposition(|(_, column)| column.width.is_some());
        match last {
            Some(last) if rest < REST_MIN => shown.remove(last),
            _ => return (shown, rest),
        };
    }
}

/// Returns the line of all queues and processes.
fn summary(seen: &Seen) -> String {
    let sum = |of: fn(&optimus_core::Counts) -> u64| -> u64 {
        seen.queues.iter().map(|line| of(&line.counts)).sum()
    };
    let queues = seen.queues.len() as u64 + seen.left_out;
    let mut line = format!(
        "{} · {} · {}, {}/{} busy · {} ready · {} dead",
        clean(&seen.namespace),
        text::count(queues, "queue"),
        processes(seen.process_count),
        number::short(seen.slots_busy),
        number::short(seen.slots_allowed),
        number::short(sum(|counts| counts.ready)),
        number::short(sum(|counts| counts.dead)),
    );
    if seen.queues.iter().any(|line| line.rate.is_some()) {
        let rate: f64 = seen.queues.iter().filter_map(|line| line.rate).sum();
        // A text takes any text.
        let _ = write!(line, " · {}/s", number::rate(rate));
    }
    if seen.left_out > 0 {
        let _ = write!(line, " · {} not read", text::count(seen.left_out, "queue"));
    }
    if seen.problem.is_none() && seen.at.elapsed() >= OLD {
        let _ = write!(line, " · {} ago", text::duration(seen.at.elapsed()));
    }
    line
}

fn processes(count: u64) -> String {
    let word = if count == 1 { "process" } else { "processes" };
    format!("{} {word}", text::number(count))
}

/// Returns the line of the pages, and of what is shown of this one.
fn page_line(view: &View, table: &Table) -> Line<'static> {
    let name = |page: Page| {
        if page == view.page() {
            Span::styled(format!("[{}]", page.name()), style(Tone::Head, view.colors))
        } else {
            Span::raw(format!(" {} ", page.name()))
        }
    };
    let mut line: Vec<Span> = Page::ALL.into_iter().map(name).collect();
    line.push(Span::raw(format!("  by {}", view.order())));
    if !view.filter.is_empty() {
        let (some, all) = (table.rows.len(), table.all);
        line.push(Span::raw(format!("  {some} of {all} have {:?}", clean(&view.filter))));
    }
    Line::from(line)
}

fn footer(view: &View) -> String {
    if view.is_typing {
        return format!("/{}_   enter keeps it, esc takes it away", clean(&view.filter));
    }
    KEYS.to_owned()
}

fn style(tone: Tone, colors: Colors) -> Style {
    let style = Style::new();
    match tone {
        Tone::Plain => style,
        Tone::Head => style.add_modifier(Modifier::BOLD),
        Tone::Pale => style.add_modifier(Modifier::DIM),
        _ if colors == Colors::Off => style,
        Tone::Good => style.fg(Color::Green),
        Tone::Warning => style.fg(Color::Yellow),
        Tone::Bad => style.fg(Color::Red),
    }
}
