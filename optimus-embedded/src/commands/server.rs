//! The commands that show or change the server.

use super::Arity::{AtLeast, Exactly};
use super::Effect::Reads;
use super::Run::{Client as OnClient, Engine as OnEngine, Keyspace as On};
use super::{Command, Outcome, upper};
use crate::connection::Client;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::glob;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("ping", AtLeast(1), Reads, On(ping)),
    Command::new("echo", Exactly(2), Reads, On(echo)),
    Command::new("time", Exactly(1), Reads, On(time)),
    Command::new("select", Exactly(2), Reads, On(select)),
    Command::new("info", AtLeast(1), Reads, On(info)),
    Command::new("config", AtLeast(2), Reads, OnEngine(config)),
    Command::new("hello", AtLeast(1), Reads, OnClient(hello)),
    Command::new("client", AtLeast(2), Reads, OnClient(client)),
];

/// The Redis version whose behaviour this crate follows.
const VERSION: &str = "7.0.15";

const CONFIG: [(&str, &str); 5] = [
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("appendonly", "no"),
    ("appendfsync", "everysec"),
    ("min-replicas-to-write", "0"),
];

fn ping(_: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    match &arguments[1..] {
        [] => Ok(Reply::Status("PONG".to_owned())),
        [message] => Ok(Reply::bulk(message)),
        _ => Err(CommandError::Arity("ping")),
    }
}

fn echo(_: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulk(&arguments[1]))
}

fn time(keyspace: &mut Keyspace, _: &[Vec<u8>]) -> Outcome {
    let now_us = keyspace.now_us();
    Ok(Reply::bulks([(now_us / 1_000_000).to_string(), (now_us % 1_000_000).to_string()]))
}

fn select(_: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    match number::integer(&arguments[1])? {
        0 => Ok(Reply::ok()),
        _ => Err(CommandError::unimplemented(b"SELECT of another database than 0")),
    }
}

fn info(_: &mut Keyspace, _: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulk(format!(
        "# Server\r\nredis_version:{VERSION}\r\nredis_mode:embedded\r\n\
         # Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
         # Persistence\r\nloading:0\r\naof_enabled:0\r\n\
         # Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
    )))
}

fn config(_: &mut Engine, arguments: &[Vec<u8>]) -> Outcome {
    match (upper(&arguments[1]).as_slice(), &arguments[2..]) {
        (b"GET", patterns @ [_, ..]) => {
            let wanted = |name: &str| {
                patterns
                    .iter()
                    .any(|pattern| glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes()))
            };
            let settings = CONFIG.into_iter().filter(|(name, _)| wanted(name));
            Ok(Reply::bulks(settings.flat_map(|(name, value)| [name, value])))
        }
        (b"GET", []) => Err(CommandError::Arity("config|get")),
        (other, _) => Err(CommandError::unimplemented(&[b"CONFIG ", other].concat())),
    }
}

fn hello(client: &Client, arguments: &[Vec<u8>]) -> Outcome {
    match &arguments[1..] {
        [] => {}
        [version] if version == b"2" => {}
        [_] => return Err(CommandError::Protocol),
        [_, option, ..] => {
            return Err(CommandError::unimplemented(&[b"HELLO ", &option[..]].concat()));
        }
    }
    let texts = |name, value: &str| [Reply::bulk(name), Reply::bulk(value)];
    let mut fields = Vec::new();
    fields.extend(texts("server", "redis"));
    fields.extend(texts("version", VERSION));
    fields.extend([Reply::bulk("proto"), Reply::Integer(2)]);
    fields.extend([Reply::bulk("id"), client_id(client)]);
    fields.extend(texts("mode", "embedded"));
    fields.extend(texts("role", "master"));
    fields.extend([Reply::bulk("modules"), Reply::Array(Vec::new())]);
    Ok(Reply::Array(fields))
}

fn client(client: &Client, arguments: &[Vec<u8>]) -> Outcome {
    match (upper(&arguments[1]).as_slice(), &arguments[2..]) {
        (b"ID", []) => Ok(client_id(client)),
        (b"SETNAME", [name]) => {
            client.name().clone_from(name);
            Ok(Reply::ok())
        }
        (b"GETNAME", []) => {
            let name = client.name();
            Ok(Reply::bulk_or_nil((!name.is_empty()).then_some(&*name)))
        }
        // Both commands only affect what a server shows, or which clients it does not evict.
        (b"SETINFO", [_, _]) | (b"NO-EVICT", [_]) => Ok(Reply::ok()),
        (b"ID" | b"SETNAME" | b"GETNAME" | b"SETINFO" | b"NO-EVICT", _) => {
            Err(CommandError::Arity("client"))
        }
        (other, _) => Err(CommandError::unimplemented(&[b"CLIENT ", other].concat())),
    }
}

fn client_id(client: &Client) -> Reply {
    Reply::Integer(i64::try_from(client.id).unwrap_or(i64::MAX))
}
