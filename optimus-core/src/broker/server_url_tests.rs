//! Which servers URLs name, which URLs are refused, and how both are printed.

use super::*;

fn problem(url: &str) -> String {
    Place::parse(url).err().expect(url)
}

#[test]
fn a_url_is_printed_without_its_password_wherever_that_is() {
    for (url, printed) in [
        ("redis://user:secret@host:6379/1", "redis://***@host:6379/1"),
        ("user:secret@host", "***@host"),
        ("redis:/user:secret@host", "***@host"),
        ("redis://user:se@cret@host", "redis://***@host"),
        ("redis://user:se?cret@host", "redis://***"),
        ("user:secret@redis://a@b", "***@b"),
        ("unix:///tmp/redis.sock?pass=secret", "unix:///tmp/redis.sock?***"),
        ("redis://ann:secret", "redis://ann:***"),
        ("redis://ann:sec/re:t", "redis://ann:***"),
        ("redis://ann:se:cret/0", "redis://ann:***"),
        ("redis://127.0.0.1:abc", "redis://127.0.0.1:***"),
        ("redis:/127.0.0.1", "redis:***"),
        ("redis://:secret/0", "redis://:***"),
        ("redis://10.0.0.7:6379/99", "redis://10.0.0.7:6379/99"),
        ("unix:///tmp/redis.sock?pass=a@secret", "unix://***"),
        ("redis://localhost:6379/", "redis://localhost:6379/"),
    ] {
        assert_eq!(redact(url), printed, "{url}");
    }
}

#[test]
fn a_place_is_printed_with_the_parameters_that_are_not_secret() {
    for (url, printed) in [
        ("redis://user:secret@host:6380/1", "redis://host:6380/1"),
        ("valkey://host", "valkey://host:6379"),
        ("redis://[::1]:7/?password_file=/run/pw", "redis://[::1]:7?password_file=/run/pw"),
        ("redis://host?db=3", "redis://host:6379?db=3"),
        ("unix:///tmp/redis.sock?pass=secret&db=2", "unix:///tmp/redis.sock?db=2&pass=***"),
        ("unix:///tmp/redis.sock?user=ann&db=2", "unix:///tmp/redis.sock?db=2&user=***"),
    ] {
        assert_eq!(Place::parse(url).ok().unwrap().shown, printed, "{url}");
    }
}

#[test]
fn a_port_or_a_database_that_is_no_number_is_named() {
    let port = problem("redis://127.0.0.1:abc");
    assert!(port.contains("there is no port"), "{port}");
    let database = problem("redis://127.0.0.1/abc");
    assert!(database.contains("not the number of a database"), "{database}");
}

#[test]
fn the_database_is_in_the_path_or_in_a_parameter() {
    let db = |url| Place::parse(url).ok().unwrap().settings.db();
    assert_eq!(db("redis://host/3"), 3);
    assert_eq!(db("redis://host?db=3"), 3);
    assert_eq!(db("unix:///tmp/redis.sock?db=3"), 3);
    assert!(problem("redis://host/3?db=4").contains("two databases"));
}

#[test]
fn the_user_and_the_password_have_one_source_each() {
    for url in [
        "redis://ann@host?user_file=/u&password_file=/p",
        "redis://ann:secret@host?password_file=/p",
        "redis://host?user_file=/u",
        "unix:///s?pass=secret&password_file=/p",
    ] {
        let problem = problem(url);
        assert!(problem.contains("leave one out") || problem.contains("add pass"), "{problem}");
    }
    let place = Place::parse("redis://ann@host?password_file=/p").ok().unwrap();
    assert_eq!(place.settings.username(), Some("ann"));
    assert_eq!(place.files.password, Some("/p".into()));
}

#[test]
fn a_fragment_is_refused_with_its_replacement() {
    for url in ["redis://host/#insecure", "redis://user:pa@host/0#x"] {
        let problem = problem(url);
        assert!(problem.contains("verify=none") && problem.contains("%23"), "{problem}");
    }
}

#[test]
fn a_password_with_a_special_character_is_refused_with_what_to_write() {
    for url in ["redis://user:secret#1@host/", "redis://user:se/cret@host/"] {
        let problem = problem(url);
        assert!(problem.contains("%23") && problem.contains("%2F"), "{problem}");
        assert!(!problem.contains("secret"), "{problem}");
    }
}

#[test]
#[cfg(not(feature = "tls"))]
fn without_the_feature_tls_is_refused_with_its_name() {
    for url in ["rediss://host", "valkeys://host?ca=x", "rediss://host?nonsense=1"] {
        assert!(problem(url).contains("feature `tls`"), "{url}");
    }
}

#[test]
#[cfg(feature = "tls")]
fn settings_of_tls_that_contradict_each_other_are_refused() {
    for (parameters, named) in [
        ("verify=maybe", "full, ca or none"),
        ("cert=/c", "without key"),
        ("key=/k", "without cert"),
        ("verify=none&ca=/ca.pem", "verify=none"),
        ("server_name=a%20b", "server_name"),
        (
            "insecure=true",
            "ca, cert, key, server_name, verify, user_file, password_file, db, protocol",
        ),
    ] {
        let problem = problem(&format!("rediss://host?{parameters}"));
        assert!(problem.contains(named), "{parameters}: {problem}");
    }
    let url = "rediss://:secret@host:6380/1?verify=ca&ca=/ca.pem&cert=/c&key=/k";
    let printed = "rediss://host:6380/1?ca=/ca.pem&cert=/c&key=/k&verify=ca";
    assert_eq!(Place::parse(url).ok().unwrap().shown, printed);
}
