//! Frames as a terminal shows them, and what keys do.

use std::{
    env, fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta};
use optimus_core::Counts;
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers},
    style::Color,
};

use super::{
    draw::draw,
    seen::{FailureLine, ProcessLine, QueueLine, RunLine, Seen},
    view::{Colors, View},
};

const HOSTILE: &str = "a\u{1b}[2J\u{202e}b\n\tc\u{200b}";

fn queue(name: &str, ready: u64, rate: f64) -> QueueLine {
    let mut counts = Counts::default();
    (counts.ready, counts.working, counts.dead) = (ready, ready / 100, ready % 7);
    (counts.retry, counts.delayed, counts.paused) = (ready % 3, ready * 1_000, name == "held");
    QueueLine {
        queue: name.to_owned(),
        counts,
        due: 0,
        oldest: (ready > 0).then(|| Duration::from_millis(ready * 30)),
        rate: Some(rate),
        run: [Some(Duration::from_millis(41)), Some(Duration::from_millis(1_200))],
        slots: if name == "alone" { 0 } else { 16 },
        problem: (name == "odd").then(|| "WRONGTYPE".to_owned()),
    }
}

fn seen() -> Seen {
    let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let run = |task: &str, s: i64, progress: &str| RunLine {
        id: format!("mail/019aa6f0-3c51-7d43-9e0f-3a4b5c6d7e8{s}"),
        task: task.to_owned(),
        attempt: 2,
        since: now - TimeDelta::seconds(s * 70),
        progress: progress.to_owned(),
    };
    let process = |host: &str, pid: u32, running: Vec<RunLine>| ProcessLine {
        id: format!("{host}-{pid}-0a0b0c0d"),
        host: host.to_owned(),
        pid,
        version: "0.1.0".to_owned(),
        started: now - TimeDelta::seconds(200_000),
        busy: running.len(),
        slots: 16,
        rss_bytes: Some(210_000_000),
        cpu: Some(0.413),
        queues: vec!["mail".to_owned(), "images".to_owned()],
        mode: if pid == 7 { "quiet" } else { "" },
        running,
    };
    let failure = |queue: &str, dead: u64, cause: &str| FailureLine {
        key: format!("{queue} {cause}"),
        queue: queue.to_owned(),
        task: "send_mail".to_owned(),
        dead,
        last: now - TimeDelta::seconds(i64::try_from(dead).unwrap()),
        cause: cause.to_owned(),
    };
    Seen {
        namespace: "shop".to_owned(),
        now,
        at: Instant::now(),
        queues: vec![
            queue("alone", 3, 0.0),
            queue("held", 41, 0.0),
            queue("images", 0, 12.3),
            queue("mail", 123_456, 1_234.5),
            queue("odd", 0, 0.0),
        ],
        left_out: 0,
        processes: vec![
            process("vm-1", 7, vec![]),
            process("vm-2", 42, vec![run("welcome", 3, "42 % copied 42"), run("digest", 1, "")]),
        ],
        process_count: 2,
        slots_busy: 2,
        slots_allowed: 32,
        failures: Some(vec![
            failure("mail", 1_204, "connect to smtp-#: timed out"),
            failure("images", 3, "no such file"),
        ]),
        problem: None,
    }
}

/// Returns what a terminal of this size shows.
fn frame(view: &mut View, seen: &Seen, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, seen)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut text = String::new();
    for y in 0..area.height {
        let (mut line, mut x) = (String::new(), 0);
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character takes the cell behind it, too.
            x += u16::try_from(unicode_width::UnicodeWidthStr::width(symbol)).unwrap().max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Compares a frame with a file of `golden/`. `OPTIMUS_GOLDEN=write` writes it.
fn matches(name: &str, shown: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/top/golden");
    let file = folder.join(format!("{name}.txt"));
    if env::var("OPTIMUS_GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&file, shown).unwrap();
    }
    assert_eq!(shown, fs::read_to_string(&file).unwrap_or_default(), "{}", file.display());
}

fn press(view: &mut View, code: KeyCode) -> bool {
    view.hear(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_in(view: &mut View, text: &str) {
    for c in text.chars() {
        assert!(press(view, KeyCode::Char(c)));
    }
}

#[test]
fn each_page_fits_a_small_terminal_and_fills_a_large_one() {
    for (name, size) in [("small", (80, 24)), ("large", (160, 20)), ("tiny", (30, 7))] {
        let mut view = View::new(Colors::Off);
        for page in ["queues", "processes", "failures"] {
            let shown = text(&frame(&mut view, &seen(), size));
            assert!(press(&mut view, KeyCode::Tab));
            matches(&format!("{page}_{name}"), &shown);
        }
    }
}

#[test]
fn no_size_of_the_terminal_is_too_small() {
    for width in 0..40 {
        for height in 0..12 {
            let mut view = View::new(Colors::On);
            for _ in 0..3 {
                frame(&mut view, &seen(), (width, height));
                press(&mut view, KeyCode::Char('G'));
                frame(&mut view, &seen(), (width, height));
                press(&mut view, KeyCode::Tab);
            }
        }
    }
}

#[test]
fn hostile_and_wide_texts_stay_in_their_cells() {
    let mut seen = seen();
    let long = "x".repeat(100_000);
    let accents = format!("e{}", "\u{301}".repeat(10_000));
    let texts = [HOSTILE, "世界世界世界世界世界世界世界世界", &long, &accents, "👩‍👩‍👧‍👦 family"];
    seen.namespace = HOSTILE.to_owned();
    seen.queues = texts.iter().map(|name| queue(name, 5, 1.0)).collect();
    for text in texts {
        let run = RunLine { id: text.to_owned(), task: text.to_owned(), ..RunLine::default() };
        let run = RunLine { progress: text.to_owned(), ..run };
        seen.processes.push(ProcessLine {
            id: text.to_owned(),
            host: text.to_owned(),
            queues: vec![text.to_owned()],
            running: vec![run],
            ..ProcessLine::default()
        });
        let line = FailureLine { queue: text.to_owned(), ..FailureLine::default() };
        let line = FailureLine { task: text.to_owned(), cause: text.to_owned(), ..line };
        seen.failures.get_or_insert_default().push(line);
    }
    seen.problem = Some(HOSTILE.repeat(100));
    // Half a minute may pass before the text is another.
    seen.at = Instant::now().checked_sub(Duration::from_secs(3_630)).unwrap();
    let mut view = View::new(Colors::Off);
    type_in(&mut view, "/");
    let _ = view.hear(&Event::Paste(String::new()));
    press(&mut view, KeyCode::Esc);
    for page in ["queues", "processes", "failures"] {
        let buffer = frame(&mut view, &seen, (80, 24));
        for cell in buffer.content() {
            let symbol = cell.symbol();
            assert!(symbol.chars().count() <= 2, "{symbol:?}");
            let is_bad = |c: char| c.is_control() || "\u{200b}\u{200d}\u{202e}".contains(c);
            assert!(!symbol.chars().any(is_bad), "{symbol:?}");
        }
        let shown = text(&buffer);
        for line in shown.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line:?}");
        }
        matches(&format!("{page}_hostile"), &shown);
        press(&mut view, KeyCode::Tab);
    }
}

#[test]
fn rows_are_ordered_and_filtered_and_the_chosen_one_is_followed() {
    let (mut view, mut seen) = (View::new(Colors::Off), seen());
    let names = |view: &mut View, seen: &Seen| -> Vec<String> {
        let shown = text(&frame(view, seen, (80, 24)));
        let rows = shown.lines().skip(3).take(5);
        rows.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
    };
    assert_eq!(names(&mut view, &seen), ["mail", "held", "alone", "images", "odd"]);
    for _ in 0..6 {
        press(&mut view, KeyCode::Char('s'));
    }
    assert_eq!(view.order(), "name");
    assert_eq!(names(&mut view, &seen), ["alone", "held", "images", "mail", "odd"]);
    press(&mut view, KeyCode::Char('s'));
    assert_eq!(view.order(), "ready");
    let chosen = |view: &mut View, seen: &Seen| -> String {
        let buffer = frame(view, seen, (80, 24));
        let reversed = |y: &u16| {
            let style = buffer[(0, *y)].style();
            style.add_modifier.contains(ratatui::style::Modifier::REVERSED)
        };
        let y = (0..24).find(reversed).expect("a row is chosen");
        text(&buffer).lines().nth(y.into()).unwrap().split(' ').next().unwrap().to_owned()
    };
    press(&mut view, KeyCode::Down);
    assert_eq!(chosen(&mut view, &seen), "held");
    seen.queues[1].counts.ready = 1_000_000;
    assert_eq!(names(&mut view, &seen)[0], "held");
    assert_eq!(chosen(&mut view, &seen), "held");
    type_in(&mut view, "/MA");
    press(&mut view, KeyCode::Enter);
    assert_eq!(names(&mut view, &seen), ["mail", "images"]);
    assert!(text(&frame(&mut view, &seen, (80, 24))).contains("2 of 5 have \"MA\""));
    assert!(press(&mut view, KeyCode::Esc), "it takes the filter away");
    assert_eq!(names(&mut view, &seen).len(), 5);
    type_in(&mut view, "/nothing");
    assert!(text(&frame(&mut view, &seen, (80, 24))).contains("No row has this text."));
}

#[test]
fn q_escape_and_control_c_leave_but_a_q_of_a_filter_does_not() {
    let control_c = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(!press(&mut View::new(Colors::Off), KeyCode::Char('q')));
    assert!(!press(&mut View::new(Colors::Off), KeyCode::Esc));
    assert!(!View::new(Colors::Off).hear(&control_c));
    let mut view = View::new(Colors::Off);
    type_in(&mut view, "/q");
    press(&mut view, KeyCode::Backspace);
    type_in(&mut view, &"q".repeat(1_000));
    assert!(view.filter.len() < 100, "it is bounded");
    assert!(!view.hear(&control_c), "also while a filter is typed");
}

#[test]
fn an_outage_is_said_with_the_age_of_what_is_shown() {
    let mut seen = seen();
    seen.problem = Some("Redis can't be reached: connection refused".to_owned());
    seen.at = Instant::now().checked_sub(Duration::from_secs(65)).unwrap();
    let buffer = frame(&mut View::new(Colors::On), &seen, (80, 24));
    let shown = text(&buffer);
    assert!(shown.contains("These are the numbers of 1 min 5 s ago: Redis can't be"), "{shown}");
    assert!(shown.contains("mail"), "{shown}");
    assert_eq!(buffer[(0, 22)].style().fg, Some(Color::Red));
    seen.problem = None;
    let shown = text(&frame(&mut View::new(Colors::On), &seen, (100, 24)));
    assert!(shown.contains("1 min 5 s ago"), "a read takes long: {shown}");
}
