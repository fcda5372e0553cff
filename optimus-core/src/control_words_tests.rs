//! Tests all ways to wrap a control word, and errors that are not control words.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
#[error("outer")]
struct Outer(#[source] BoxError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Transparent(#[from] Snooze);

fn through_anyhow(word: Snooze) -> anyhow::Result<()> {
    Err(word)?
}

fn through_eyre(word: Snooze) -> eyre::Result<()> {
    Err(word)?
}

fn found(error: impl Into<BoxError>) -> Control {
    Control::of(&*error.into())
}

fn word() -> Snooze {
    Snooze::new(SECOND)
}

#[test]
fn a_handler_that_returns_an_io_error_can_return_a_word() {
    fn retry() -> io::Result<()> {
        Err(Retry::after(SECOND).because("503"))?
    }
    let wait = Control::RetryAfter(SECOND, None);
    let problem = retry().unwrap_err();
    assert_eq!(Control::of(&problem), wait);
    assert!(Chain(&problem).to_string().contains("503"), "{}", Chain(&problem));
    let words: [io::Error; 3] = [Fatal::new("410").into(), word().into(), Cancel.into()];
    let found = words.map(|word| Control::of(&word));
    assert_eq!(found, [Control::Fatal, Control::Snooze(SECOND), Control::Cancel]);
    assert_eq!(Control::of(&io::Error::other("boom")), Control::Fail);
}

#[test]
fn a_control_word_is_found_below_other_errors() {
    let cases: [(BoxError, Control); 7] = [
        (Retry::after(SECOND).because("boom").into(), Control::RetryAfter(SECOND, None)),
        (
            Retry::after(SECOND).because("boom").pause_lane().into(),
            Control::RetryAfter(SECOND, Some(ShutScope::Lane)),
        ),
        (Fatal::new("boom").into(), Control::Fatal),
        (word().into(), Control::Snooze(SECOND)),
        (word().because("boom").into(), Control::Snooze(SECOND)),
        (Cancel.into(), Control::Cancel),
        ("boom".into(), Control::Fail),
    ];
    for (word, control) in cases {
        assert_eq!(found(Outer(Box::new(Outer(word)))), control);
    }
}

#[test]
fn a_control_word_is_found_however_anyhow_wraps_it() {
    use anyhow::Context as _;
    let ensured = || -> anyhow::Result<()> {
        anyhow::ensure!(false, word());
        Ok(())
    };
    let bailed = || -> anyhow::Result<()> { anyhow::bail!(word()) };
    let boxed: BoxError = word().into();
    let ways = [
        ("?", through_anyhow(word()).unwrap_err()),
        ("into", word().into()),
        ("new", anyhow::Error::new(word())),
        ("msg", anyhow::Error::msg(word())),
        ("from_boxed", anyhow::Error::from_boxed(word().into())),
        ("anyhow!", anyhow::anyhow!(word())),
        ("anyhow! of a box", anyhow::anyhow!(boxed)),
        ("bail!", bailed().unwrap_err()),
        ("ensure!", ensured().unwrap_err()),
        ("context over it", through_anyhow(word()).context("above").unwrap_err()),
        ("context of a result", Err::<(), _>(word()).context("above").unwrap_err()),
        ("two contexts", through_anyhow(word()).context("above").context("top").unwrap_err()),
        ("the word is the context", Err::<(), _>(fmt::Error).context(word()).unwrap_err()),
        ("the word is a context without an error", None::<()>.context(word()).unwrap_err()),
        ("context over its box", anyhow::Error::from_boxed(word().into()).context("above")),
        ("transparent", anyhow::Error::new(Transparent::from(word()))),
        ("below another", anyhow::Error::new(Outer(word().into()))),
        ("anyhow in anyhow", anyhow::anyhow!(BoxError::from(anyhow::Error::new(word())))),
    ];
    for (way, error) in ways {
        assert_eq!(found(error), Control::Snooze(SECOND), "{way}");
    }
    let reallocated =
        anyhow::Error::new(word()).reallocate_into_boxed_dyn_error_without_backtrace();
    assert_eq!(Control::of(&*reallocated), Control::Snooze(SECOND));
}

#[test]
fn a_control_word_is_found_however_eyre_wraps_it() {
    use eyre::WrapErr as _;
    let ensured = || -> eyre::Result<()> {
        eyre::ensure!(false, word());
        Ok(())
    };
    let bailed = || -> eyre::Result<()> { eyre::bail!(word()) };
    let ways = [
        ("?", through_eyre(word()).unwrap_err()),
        ("into", word().into()),
        ("new", eyre::Report::new(word())),
        ("msg", eyre::Report::msg(word())),
        ("eyre!", eyre::eyre!(word())),
        ("bail!", bailed().unwrap_err()),
        ("ensure!", ensured().unwrap_err()),
        ("wrapped", through_eyre(word()).wrap_err("above").unwrap_err()),
        ("it wraps", Err::<(), _>(fmt::Error).wrap_err(word()).unwrap_err()),
        ("below another", eyre::Report::new(Outer(word().into()))),
    ];
    for (way, error) in ways {
        assert_eq!(found(error), Control::Snooze(SECOND), "{way}");
    }
}

#[test]
fn no_snooze_is_so_short_that_its_task_spins() {
    for short in [Duration::ZERO, Duration::from_millis(1)] {
        let least = Control::Snooze(Duration::from_millis(100));
        assert_eq!(found(Snooze::new(short)), least);
    }
}

#[test]
fn the_first_word_of_a_chain_applies() {
    let retry = || Retry::after(SECOND).because(Fatal::new("boom"));
    assert_eq!(found(retry()), Control::RetryAfter(SECOND, None));
    assert_eq!(found(anyhow::Error::new(retry())), Control::RetryAfter(SECOND, None));
    assert_eq!(found(anyhow::Error::new(retry()).context(Cancel)), Control::Cancel);
}

#[test]
fn an_error_that_only_mentions_a_word_is_not_one() {
    #[derive(Debug, thiserror::Error)]
    #[error("3 of 9 failed: {0}, and others")]
    struct Several(Fatal);
    let shown = Fatal::new("boom").to_string();
    assert_eq!(found(Several(Fatal::new("boom"))), Control::Fail);
    assert_eq!(found(shown.clone()), Control::Fail, "a text that was made before");
    assert_eq!(found(anyhow::Error::msg(shown)), Control::Fail);
}

#[test]
fn a_word_shows_its_cause() {
    assert_eq!(Fatal::new("boom").to_string(), "fatal: boom");
    assert_eq!(Retry::after(SECOND).because("boom").to_string(), "retry in 1s: boom");
    assert_eq!(Retry::after(SECOND).to_string(), "retry in 1s");
    let long = "x".repeat(2 * COMPARED_BYTES_MAX);
    assert_eq!(found(Outer(Fatal::new(long).into())), Control::Fatal, "a cause of any length");
}

#[test]
fn the_cause_of_a_word_is_written_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("no payment: {0}")]
    struct Unpaid(#[source] Fatal);
    let written = |error: BoxError| Chain(&*error).to_string();
    assert_eq!(written(Fatal::new("boom").into()), "boom");
    let retry = || Retry::after(SECOND).because(Outer("boom".into()));
    let expected = "retry in 1s\n  caused by: outer\n  caused by: boom";
    assert_eq!(written(retry().into()), expected);
    assert_eq!(written(anyhow::Error::new(retry()).into()), expected);
    assert_eq!(written(Unpaid(Fatal::new("boom")).into()), "no payment: fatal: boom");
}

#[test]
fn after_the_last_retry_the_word_says_that_none_is_left_wherever_it_is() {
    let written = |error: BoxError| LastChain(&*error).to_string();
    let left = "asked to be retried in 1s, but no retry is left";
    assert_eq!(written(Retry::after(SECOND).into()), left);
    let retry = || Retry::after(SECOND).pause_lane().because("boom");
    let expected = format!("{left}; its lane pauses\n  caused by: boom");
    assert_eq!(written(retry().into()), expected);
    let above = anyhow::Error::new(retry()).context("above");
    assert_eq!(written(above.into()), format!("above\n  caused by: {expected}"));
    for other in [Fatal::new("boom").into(), BoxError::from("boom")] {
        assert_eq!(written(other), "boom");
    }
}

#[test]
fn a_word_shows_its_cause_after_an_error_whose_display_panics() {
    #[derive(Debug)]
    struct Panics;
    impl fmt::Display for Panics {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("in Display")
        }
    }
    impl Error for Panics {}
    std::panic::catch_unwind(|| Control::of(&Panics)).unwrap_err();
    assert_eq!(Fatal::new("boom").to_string(), "fatal: boom");
}

#[test]
fn an_error_is_written_with_all_its_sources() {
    let error = Outer(Box::new(Outer("boom".into())));
    assert_eq!(Chain(&error).to_string(), "outer\n  caused by: boom");
    let fatal = anyhow::Error::new(Fatal::new("boom")).context("above");
    let text = Chain(&*BoxError::from(fatal)).to_string();
    assert_eq!(text, "above\n  caused by: boom");
}

#[test]
fn a_source_that_the_line_before_ends_with_is_not_written_twice() {
    #[derive(Debug, thiserror::Error)]
    #[error("can't be read: {0}")]
    struct Unreadable(#[source] Outer);
    let error = Unreadable(Outer("boom".into()));
    assert_eq!(Chain(&error).to_string(), "can't be read: outer\n  caused by: boom");
}

#[test]
fn writing_an_error_that_is_its_own_source_ends() {
    #[derive(Debug)]
    struct Circle;
    impl fmt::Display for Circle {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("circle")
        }
    }
    impl Error for Circle {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&Circle)
        }
    }
    assert_eq!(Chain(&Circle).to_string(), "circle");
}
