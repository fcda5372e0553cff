//! A panic while the live view is on the screen.

#[path = "../../src/top/screen.rs"]
mod screen;

use std::{env, process::Command};

use ratatui::widgets::Paragraph;

use self::screen::Screen;
use crate::top::OnTerminal;

const NAME: &str = "top_panic::a_program_that_breaks_while_it_draws";
/// What a panicking test exits with.
const PANICKED: i32 = 101;
/// Ends the view of the whole terminal.
const OLD_LINES: &str = "\u{1b}[?1049l";

#[ignore = "the test below runs it on a terminal of its own"]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_breaks_while_it_draws() {
    let mut screen = Screen::open().unwrap();
    screen.draw(|frame| frame.render_widget(Paragraph::new("drawn"), frame.area())).unwrap();
    // The view outlives the part that breaks, as that of `optimus top` does.
    let key = screen.next().await;
    let broken = tokio::spawn(async move { panic!("broken after {key:?}") }).await;
    broken.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_gives_the_terminal_back_before_it_says_why() {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", NAME, "--ignored", "--nocapture"]);
    let mut top = OnTerminal::start(&program);
    top.draws("drawn").await;
    assert!(top.is_raw());
    top.press("x");
    top.ends(PANICKED).await;
    let shown = top.shown();
    let (back, why) = (shown.find(OLD_LINES), shown.find("broken after"));
    assert!(back.is_some() && back < why, "the words of the panic stay: {shown:?}");
}
