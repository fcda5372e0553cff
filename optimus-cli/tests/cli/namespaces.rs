//! The namespaces of a Redis: what a program uses by mistake is found.

use optimus::Client;

use crate::{deep::Ward, kit::raw, stage::send};

#[tokio::test(flavor = "multi_thread")]
async fn all_namespaces_of_a_redis_are_listed_with_what_waits_in_them() {
    let ward = Ward::open().await;
    ward.client.submit(send("x".to_owned())).await.unwrap();
    let url = ward.server.url();
    let shop = Client::builder(&url).namespace("shop").connect().await.unwrap();
    for _ in 0..3 {
        shop.submit(send("x".to_owned())).await.unwrap();
    }
    assert_eq!(raw(&url, &["SADD", "resque:queues", "mail"]), ":1", "that of another program");
    assert_eq!(raw(&url, &["HSET", "{a:b:c:0}:meta", "x", "y"]), ":1", "another one");
    let rows = ward.optimus(&["namespace", "list", "--json"]).ended(0).json();
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (row["namespace"].as_str().unwrap(), row["ready"].as_u64(), &row["is_used"]))
        .collect();
    assert_eq!(seen, [("optimus", Some(1), &true.into()), ("shop", Some(3), &false.into())]);
    ward.optimus(&["namespace", "list"]).ended(0).matches("namespace_list");

    for number in 0..20 {
        let (begin, end) = (number * 100, number * 100 + 100);
        let pairs = (begin..end).flat_map(|key| [format!("key-{key}"), "x".to_owned()]);
        let words: Vec<String> = std::iter::once("MSET".to_owned()).chain(pairs).collect();
        raw(&url, &words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let cut = ward.optimus(&["namespace", "list", "--keys", "1000"]).ended(5);
    assert!(cut.err.contains("about 1,000 of 2,0"), "{cut:?}");
    assert_eq!(ward.optimus(&["namespace", "list", "--json"]).ended(0).json().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_a_namespace_that_nobody_uses_and_names_those_with_queues() {
    let ward = Ward::open().await;
    let url = ward.server.url();
    let shop = Client::builder(&url).namespace("shop").connect().await.unwrap();
    shop.dispenser("review").add(["photo"]).await.unwrap();
    let none = ward.optimus(&["doctor", "-q", "--namespace", "shpo"]).ended(8).out;
    let said = "namespace shpo: no task was submitted to it lately, and no worker serves it; is";
    assert!(none.contains(said) && none.contains("no other one has a queue"), "{none}");
    shop.submit(send("x".to_owned())).await.unwrap();
    ward.client.submit(send("x".to_owned())).await.unwrap();
    let found = ward.optimus(&["doctor", "-q", "--namespace", "shpo"]).ended(8).out;
    assert!(found.ends_with("misspelt? Those with queues are: optimus, shop\n"), "{found}");

    let rules = "ACL SETUSER eve on >pw resetkeys ~* &* +@all -@admin -scan";
    raw(&url, &rules.split_whitespace().collect::<Vec<_>>());
    let login = format!("{url}?user=eve&pass=pw");
    let line = ["doctor", "-q", "--namespace", "shpo", "--url", &login];
    let found = ward.optimus(&line).ended(8).out;
    assert!(found.contains("namespace shpo: ") && found.contains("`optimus namespace list`"));
}
