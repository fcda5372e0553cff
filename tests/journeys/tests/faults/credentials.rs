//! Users and passwords that change while programs run.

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::common::{Bench, Double, Gate, Raw, Wait};
use optimus_core::{BoxError, Client, ClientBuilder, Credentials, Task};
use optimus_testkit::{RedisServer, eventually, hanging_file, namespace};

const SOON: Duration = Duration::from_secs(20);

/// The credentials that a program returns, and how often they were requested.
#[derive(Clone)]
struct Vault {
    current: Arc<Mutex<Credentials>>,
    asked: Arc<AtomicUsize>,
}

impl Vault {
    fn with(credentials: Credentials) -> Self {
        Self { current: Arc::new(Mutex::new(credentials)), asked: Arc::default() }
    }

    fn set(&self, credentials: Credentials) {
        *self.current.lock().unwrap() = credentials;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    async fn get(self) -> Result<Credentials, BoxError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Ok(self.current.lock().unwrap().clone())
    }
}

async fn user(admin: &mut Raw, name: &str, password: &str) {
    admin.run(&format!("ACL SETUSER {name} on resetpass >{password} ~* &* +@all")).await;
}

/// Returns a bench whose client requests its credentials from the vault.
fn client(url: &str, namespace: &str, vault: &Vault) -> ClientBuilder {
    let vault = vault.clone();
    Client::builder(url).namespace(namespace).credentials(move || vault.clone().get())
}

/// Returns the ids and users of the server's clients, without the admin.
async fn clients(admin: &mut Raw) -> Vec<(String, String)> {
    let list = String::from_utf8(admin.run("CLIENT LIST").await.remove(0)).unwrap();
    let field = |line: &str, name: &str| {
        let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
        fields.find(|(field, _)| *field == name).unwrap().1.to_owned()
    };
    let others = list.lines().filter(|line| field(line, "user") != "default");
    // While a connection waits, Redis does not read further commands on it.
    for waiting in others.clone().filter(|line| field(line, "cmd") == "blpop") {
        admin.run(&format!("CLIENT UNBLOCK {}", field(waiting, "id"))).await;
    }
    let mut clients: Vec<_> = others.map(|line| (field(line, "id"), field(line, "user"))).collect();
    clients.sort();
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_changes_while_a_worker_runs_loses_no_task() {
    let server = RedisServer::builder().tcp().start();
    let mut admin = Raw::connect(&server.url()).await;
    user(&mut admin, "ann", "one").await;
    let vault = Vault::with(Credentials::new("ann", "one"));
    let namespace = namespace();
    let bench = Bench::shared(&server.url(), &namespace).await;
    let client = client(&server.url(), &namespace, &vault).connect().await.unwrap();
    let gate = Gate::new();
    let asking = vault.clone();
    // A handler is asked to stop when its lease ends, and this outage may last as long as a call.
    let worker = bench.worker().lease(3 * SOON);
    let worker = worker.task_type::<Double>().task_type::<Wait>().data(gate.clone());
    let worker = bench.start(worker.credentials(move || asking.clone().get()));
    let held = client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    let asked = vault.asked();
    assert!(asked > 1, "each connection requests the credentials");

    // The server gets the new password first, and then closes all connections of the user.
    user(&mut admin, "ann", "two").await;
    admin.run("CLIENT KILL USER ann").await;
    let submitting = tokio::spawn({
        let client = client.clone();
        async move { client.submit_all((0..500).map(|number| Double { number }.call())).await }
    });
    eventually("both connections are refused", SOON, async || vault.asked() > asked + 4).await;
    let problem = client.inspector().queues().await.unwrap_err();
    assert!(problem.is_unavailable(), "{problem}");
    assert!(!problem.to_string().contains("one"), "{problem}");
    vault.set(("ann", "two").into());

    gate.open.hit();
    held.result_within(SOON).await.unwrap();
    for (number, handle) in (0..).zip(submitting.await.unwrap().unwrap()) {
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    assert_eq!(gate.began.hits(), 1, "the held task ran once");
    worker.stop().await;
}

/// Tokens need this, because they expire while connections are open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connections_log_in_again_in_time() {
    let server = RedisServer::builder().tcp().start();
    let mut admin = Raw::connect(&server.url()).await;
    user(&mut admin, "ann", "one").await;
    user(&mut admin, "bob", "two").await;
    let valid = Duration::from_secs(2);
    let vault = Vault::with(Credentials::new("ann", "one").valid_for(valid));
    let namespace = namespace();
    let bench = Bench::shared(&server.url(), &namespace).await;
    let client = client(&server.url(), &namespace, &vault).connect().await.unwrap();
    let asking = vault.clone();
    let worker = bench.worker().task_type::<Double>();
    let worker = bench.start(worker.credentials(move || asking.clone().get()));
    client.submit(Double { number: 21 }.call()).await.unwrap();
    let mut before = Vec::new();
    eventually("all connections are open", SOON, async || {
        before = clients(&mut admin).await;
        before.len() == 5
    })
    .await;
    user(&mut admin, "ann", "new").await;
    vault.set(Credentials::new("ann", "new").valid_for(valid));
    let asked = vault.asked();
    eventually("all connections log in again", SOON, async || vault.asked() > asked + 5).await;
    let now = clients(&mut admin).await;
    assert!(
        before.iter().all(|one| now.contains(one)),
        "a connection was lost: {before:?}, {now:?}"
    );
    let refused = admin.run("ACL LOG").await;
    assert!(refused.is_empty(), "{refused:?}");

    // Another user may lack permissions, so it gets connections of its own.
    vault.set(Credentials::new("bob", "two").valid_for(valid));
    eventually("all connections have the other user", SOON, async || {
        client.submit(Double { number: 1 }.call()).await.unwrap();
        bench.client.inspector().counts("default").await.unwrap();
        clients(&mut admin).await.iter().all(|(_, user)| user == "bob")
    })
    .await;

    // After a refusal the connections stay as they are, and request the credentials again.
    vault.set(Credentials::new("bob", "wrong").valid_for(valid));
    let asked = vault.asked();
    eventually("the login was refused", SOON, async || vault.asked() > asked + 5).await;
    let handle = client.submit(Double { number: 4 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 8);
    worker.stop().await;
}

#[tokio::test]
async fn wrong_credentials_of_the_program_are_an_error_at_the_first_connection() {
    let server = RedisServer::builder().tcp().password("sesame").start();
    let url = server.url().replace(":sesame@", "");
    let ask = |password: &'static str| {
        let ask = move || async move { Ok(("default", password)) };
        Client::builder(&url).credentials(ask).connect()
    };
    let problem = ask("pumpkin").await.err().unwrap();
    assert!(problem.is_unauthorized(), "{problem}");
    assert!(!problem.to_string().contains("pumpkin"), "{problem}");
    ask("sesame").await.unwrap();
}

#[tokio::test]
async fn a_function_that_fails_panics_or_does_not_answer_is_named_as_the_cause() {
    let server = RedisServer::start();
    let with = async |how: &'static str| {
        let ask = move || async move {
            match how {
                "fails" => Err("the vault is sealed".into()),
                "panics" => panic!("on purpose"),
                _ => std::future::pending::<Result<Credentials, BoxError>>().await,
            }
        };
        Client::builder(&server.url()).credentials(ask).connect().await.err().unwrap()
    };
    for (how, said) in [
        ("fails", "the vault is sealed"),
        ("panics", "panicked"),
        ("hangs", "no answer within 5 s"),
    ] {
        let problem = with(how).await;
        assert!(problem.is_unavailable(), "{problem}");
        assert!(problem.to_string().contains("no credentials"), "{problem}");
        assert!(problem.to_string().contains(said), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_the_url_are_read_again_by_each_connection() {
    let server = RedisServer::builder().tcp().start();
    let mut admin = Raw::connect(&server.url()).await;
    user(&mut admin, "ann", "one").await;
    let folder = server.folder().display();
    let file = |name: &str, text: &str| fs::write(server.folder().join(name), text).unwrap();
    let url = format!("{}?user_file={folder}/user&password_file={folder}/word", server.url());
    let problem = Client::connect(&url).await.err().unwrap();
    assert!(problem.is_invalid() && problem.to_string().contains("user_file"), "{problem}");

    file("user", "ann\n");
    file("word", "one\n");
    let bench = Bench::shared(&url, &namespace()).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let handle = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    user(&mut admin, "ann", "two").await;
    file("word", "two\n");
    admin.run("CLIENT KILL USER ann").await;
    let handle = bench.client.submit(Double { number: 2 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 4);
    worker.stop().await;
}

#[test]
fn a_password_file_that_hangs_stops_neither_submits_nor_the_end_of_the_program() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let server = RedisServer::builder().tcp().start();
    let admin = runtime();
    let mut raw = admin.block_on(Raw::connect(&server.url()));
    admin.block_on(user(&mut raw, "ann", "sesame"));
    let word = server.folder().join("word");
    fs::write(&word, "sesame").unwrap();
    let url = server.url().replace("redis://", "redis://ann@");
    let url = format!("{url}?password_file={}", word.display());
    let program = runtime();
    let client = program.block_on(Client::connect(&url)).unwrap();
    hanging_file(&word);
    for number in 0..3 {
        admin.block_on(raw.run("CLIENT KILL USER ann"));
        let submit = async { client.submit(Double { number }.call()).await.map(drop) };
        program.block_on(submit).unwrap();
    }
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        drop((client, program));
        ended.send(()).unwrap();
    });
    end.recv_timeout(SOON).expect("the program ends while the file hangs");
    // The thread that reads ends with its file.
    fs::write(&word, "sesame").unwrap();
}
