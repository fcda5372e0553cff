//! What the operator has chosen to see: [`View`].

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    failure_table,
    place::{Move, Place},
    process_table, queue_table,
    seen::Seen,
    table::Table,
};

/// The longest text that rows can be asked to have.
const FILTER_CHARS: usize = 60;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Queues,
    Processes,
    Failures,
}

impl Page {
    pub(super) const ALL: [Self; 3] = [Self::Queues, Self::Processes, Self::Failures];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queues => "Queues",
            Self::Processes => "Processes",
            Self::Failures => "Failures",
        }
    }

    fn orders(self) -> Vec<&'static str> {
        match self {
            Self::Queues => queue_table::ORDERS.iter().map(|order| order.name).collect(),
            Self::Processes => process_table::ORDERS.iter().map(|order| order.name).collect(),
            Self::Failures => failure_table::ORDERS.iter().map(|order| order.name).collect(),
        }
    }
}

/// Whether what is shown has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colors {
    On,
    Off,
}

impl From<bool> for Colors {
    fn from(has_colors: bool) -> Self {
        if has_colors { Self::On } else { Self::Off }
    }
}

/// What the operator has chosen: the page, the order of its rows, a text that they have, and a row.
#[derive(Debug)]
pub(super) struct View {
    page: Page,
    /// By page.
    orders: [usize; 3],
    pub(super) places: [Place; 3],
    pub(super) filter: String,
    /// Whether keys are letters of the filter.
    pub(super) is_typing: bool,
    pub(super) colors: Colors,
}

impl View {
    pub(super) fn new(colors: Colors) -> Self {
        Self {
            page: Page::Queues,
            orders: [0; 3],
            places: Default::default(),
            filter: String::new(),
            is_typing: false,
            colors,
        }
    }

    pub(super) fn page(&self) -> Page {
        self.page
    }

    pub(super) fn place(&mut self) -> &mut Place {
        &mut self.places[self.page as usize]
    }

    /// Returns the name of the order of the rows.
    pub(super) fn order(&self) -> &'static str {
        self.page.orders()[self.orders[self.page as usize]]
    }

    /// Returns the rows of the page.
    pub(super) fn table(&self, seen: &Seen) -> Table {
        let order = self.orders[self.page as usize];
        match self.page {
            Page::Queues => queue_table::table(seen, order, &self.filter),
            Page::Processes => process_table::table(seen, order, &self.filter),
            Page::Failures => failure_table::table(seen, order, &self.filter),
        }
    }

    /// Does what a key means. Returns whether the operator stays.
    pub(super) fn hear(&mut self, event: &Event) -> bool {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.press(*key),
            Event::Paste(text) if self.is_typing => {
                text.chars().for_each(|c| self.type_in(c));
                true
            }
            // The next frame has the new size.
            _ => true,
        }
    }

    fn press(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return false;
        }
        if self.is_typing {
            self.edit(key);
            return true;
        }
        match key.code {
            KeyCode::Char('q') => return false,
            // The first one takes the filter away, as it does in other programs.
            KeyCode::Esc if self.filter.is_empty() => return false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('s') => self.turn_order(),
            KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => self.turn_page(1),
            KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => self.turn_page(2),
            KeyCode::Char(digit @ '1'..='3') => {
                self.page = Page::ALL[digit as usize - '1' as usize];
            }
            code => {
                if let Some(how) = move_of(code) {
                    self.place().go(how);
                }
            }
        }
        true
    }

    fn edit(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char('u') if is_control => self.filter.clear(),
            KeyCode::Char(c) if !is_control => self.type_in(c),
            _ => {}
        }
    }

    fn type_in(&mut self, c: char) {
        if !c.is_control() && self.filter.chars().count() < FILTER_CHARS {
            self.filter.push(c);
        }
    }

    fn turn_order(&mut self) {
        let order = &mut self.orders[self.page as usize];
        *order = (*order + 1) % self.page.orders().len();
        self.place().go(Move::First);
    }

    fn turn_page(&mut self, by: usize) {
        self.page = Page::ALL[(self.page as usize + by) % Page::ALL.len()];
    }
}

fn move_of(code: KeyCode) -> Option<Move> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => Move::Up,
        KeyCode::Down | KeyCode::Char('j') => Move::Down,
        KeyCode::PageUp => Move::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Move::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Move::First,
        KeyCode::End | KeyCode::Char('G') => Move::Last,
        _ => return None,
    })
}
