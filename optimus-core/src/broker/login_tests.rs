//! Functions and files that return credentials late, twice, or not at all.

use std::{
    io::Write as _,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use optimus_testkit::{Signal, hanging_file};

use super::*;
use crate::control_words::BoxError;

fn login(url: &str, ask: Option<AskCredentials>) -> Arc<Login> {
    Arc::new(Login::new(&Place::parse(url).unwrap_or_else(|_| panic!("{url} is valid")), ask))
}

/// Asks a function that counts its calls. It gets the number of earlier calls.
fn counting(
    answer: impl Fn(usize) -> BoxFuture<'static, Result<(String, String), BoxError>>
    + Send
    + Sync
    + 'static,
) -> (Arc<Login>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let ask = AskCredentials::new(move || answer(counted.fetch_add(1, Ordering::Relaxed)));
    (login("redis://host", Some(ask)), calls)
}

fn pair(password: &str) -> (String, String) {
    ("ann".to_owned(), password.to_owned())
}

#[tokio::test]
async fn each_connection_asks() {
    let (login, calls) = counting(|call| async move { Ok(pair(&call.to_string())) }.boxed());
    for call in 0..3 {
        let known = login.ask().await.ok().unwrap();
        assert_eq!(known.credentials, Some(Credentials::new("ann", call.to_string())));
        assert_eq!(known.old, None);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn the_next_connection_gets_the_answer_to_the_question_of_one_that_was_given_up() {
    let answered = Signal::new();
    let gate = answered.clone();
    let (login, calls) = counting(move |_| {
        let gate = gate.clone();
        async move {
            gate.wait_for(1).await;
            Ok(pair("late"))
        }
        .boxed()
    });
    assert!(timeout(Duration::from_millis(10), login.ask()).await.is_err());
    answered.hit();
    let known = login.ask().await.ok().unwrap();
    assert_eq!(known.credentials, Some(Credentials::new("ann", "late")));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn without_an_answer_the_last_one_is_used_and_the_reason_kept() {
    let (login, _) = counting(|call| {
        async move { if call == 1 { Ok(pair("right")) } else { Err("sealed".into()) } }.boxed()
    });
    match login.ask().await.err().unwrap() {
        DialError::NoCredentials(why) => assert_eq!(why, "sealed"),
        other => panic!("{other:?}"),
    }
    assert!(login.ask().await.is_ok());
    let known = login.ask().await.ok().unwrap();
    assert_eq!(known.credentials, Some(Credentials::new("ann", "right")));
    assert_eq!(known.old.as_deref(), Some("sealed"));
}

#[tokio::test(start_paused = true)]
async fn a_function_that_never_answers_is_asked_again() {
    let (login, calls) = counting(|call| {
        async move {
            if call == 0 {
                std::future::pending::<()>().await;
            }
            Ok(pair("right"))
        }
        .boxed()
    });
    assert!(login.ask().await.is_err());
    assert!(login.ask().await.is_err());
    assert_eq!(calls.load(Ordering::Relaxed), 1, "the first call may still answer");
    tokio::time::advance(ABANDONED_AFTER).await;
    assert!(login.ask().await.is_ok());
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn files_are_read_for_each_connection_without_their_line_end() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let login = login(&format!("redis://ann@host?password_file={}", file.path().display()), None);
    match login.ask().await.err().unwrap() {
        DialError::Misconfigured(why) => {
            assert!(why.contains("password_file") && why.contains("empty"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    for line in ["one\n", "two\r\n"] {
        file.as_file().set_len(0).unwrap();
        std::io::Seek::rewind(file.as_file_mut()).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        let known = login.ask().await.ok().unwrap();
        assert_eq!(known.credentials, Some(Credentials::new("ann", line.trim_end())));
    }
}

#[test]
fn a_file_that_hangs_is_read_once_and_the_end_of_the_runtime_does_not_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("word");
    fs::write(&path, "one").unwrap();
    let login = login(&format!("redis://ann@host?password_file={}", path.display()), None);
    let known = |password: &str| Some(Credentials::new("ann", password));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(login.ask()).ok().unwrap().credentials, known("one"));

    hanging_file(&path);
    for _ in 0..3 {
        let hung = runtime.block_on(login.ask()).ok().unwrap();
        assert_eq!(hung.credentials, known("one"));
        assert!(hung.old.unwrap().contains("password_file"), "the file is named");
    }
    let (ended, end) = mpsc::channel();
    let ending = thread::spawn(move || {
        drop(runtime);
        ended.send(()).unwrap();
    });
    end.recv_timeout(ANSWER_WITHIN).expect("the runtime ends while the file hangs");
    ending.join().unwrap();

    // The late result of the hung read is not the answer to a later request.
    fs::write(&path, "two").unwrap();
    while login.source.may_answer_late() {
        thread::yield_now();
    }
    fs::remove_file(&path).unwrap();
    fs::write(&path, "three").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(login.ask()).ok().unwrap().credentials, known("three"));
}

#[test]
fn credentials_are_renewed_well_before_they_end() {
    let after = |credentials: Credentials| lasts(&credentials).as_secs();
    let of = || Credentials::new("a", "b");
    assert!((607..=675).contains(&after(of().valid_for(Duration::from_secs(900)))));
    assert!((3_240..=3_600).contains(&after(of())));
    assert!(lasts(&of().valid_for(Duration::ZERO)) >= RENEWED_MIN);
}
