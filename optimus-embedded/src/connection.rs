//! The connection, which the redis crate uses in place of a socket.

use std::sync::{Arc, Mutex, MutexGuard};

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use crate::blocking::Wait;
use crate::commands::{self, lists};
use crate::engine::Arguments;
use crate::reply::Reply;
use crate::store::Store;

/// A connection to a [`Store`]. Clones are the same client, as with a multiplexed connection.
///
/// A command runs completely when its future is first polled. The exception is `BLPOP`, which waits
/// without a lock. A dropped `BLPOP` has taken nothing.
#[derive(Clone, Debug)]
pub struct Connection {
    store: Store,
    client: Arc<Client>,
}

/// The data that the store keeps about a connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    name: Mutex<Vec<u8>>,
}

impl Client {
    /// Returns the name from CLIENT SETNAME, which is empty at first.
    pub(crate) fn name(&self) -> MutexGuard<'_, Vec<u8>> {
        self.name.lock().expect("no code panics while it holds a client's name")
    }
}

impl Connection {
    pub(crate) fn new(store: Store, id: u64) -> Self {
        Self { store, client: Arc::new(Client { id, name: Mutex::default() }) }
    }

    /// Returns the client id, which is unique in the store.
    #[cfg(feature = "simulation")]
    pub fn id(&self) -> u64 {
        self.client.id
    }

    /// Runs one command, and waits if the command must wait.
    async fn execute(&self, arguments: Arguments) -> Reply {
        let (wait, timeout) = {
            let mut engine = self.store.engine();
            let reply = engine.execute(&self.client, &arguments);
            if reply != Reply::Nil || !commands::blocks(&arguments) {
                return reply;
            }
            let (keys, timeout) = match lists::blocking_arguments(&arguments) {
                Ok(parsed) => parsed,
                Err(error) => return Reply::Error(error),
            };
            (Wait::new(&self.store, &mut engine.keyspace, keys), timeout)
        };
        let delivery = wait.outcome(timeout).await;
        delivery.map_or(Reply::Nil, |delivery| lists::popped(delivery.key, delivery.element))
    }

    /// Runs a pipeline. The replies are those of a server, including the replies of MULTI and EXEC.
    async fn execute_all(&self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        let batch: RedisResult<Vec<Arguments>> = pipeline.cmd_iter().map(arguments).collect();
        let batch = batch?;
        if pipeline.is_transaction() {
            let replies = self.store.engine().transact(&self.client, &batch);
            return match replies {
                Ok(replies) => Ok(transaction_replies(replies)),
                Err(error) => Err(as_error(Reply::Error(error))),
            };
        }
        let mut replies = Vec::with_capacity(batch.len());
        for arguments in batch {
            replies.push(self.execute(arguments).await.into());
        }
        Ok(replies)
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            be_fair().await;
            Ok(self.execute(arguments(cmd)?).await.into())
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            be_fair().await;
            #[cfg(feature = "simulation")]
            if let Some(gate) = self.store.gate.clone() {
                let behind = Self { store: self.store.ungated(), ..self.clone() };
                return gate.carry(behind, pipeline, offset, count).await;
            }
            let replies = self.execute_all(pipeline).await?;
            Ok(replies.into_iter().skip(offset).take(count).collect())
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Yields from time to time, like a task that waits for a socket. This connection has no socket, so
/// without this call a loop over commands would block its thread.
async fn be_fair() {
    tokio::task::coop::consume_budget().await;
}

/// Returns the arguments of the command, as a server reads them.
fn arguments(cmd: &Cmd) -> RedisResult<Arguments> {
    let plain = cmd.args_iter().map(|argument| match argument {
        Arg::Simple(bytes) => Some(bytes.to_vec()),
        _ => None,
    });
    if let Some(arguments) = plain.collect() {
        return Ok(arguments);
    }
    // Only the encoded command contains the value of a cursor.
    let Value::Array(encoded) = redis::parse_redis_value(&cmd.get_packed_command())? else {
        unreachable!("a command is encoded as an array")
    };
    encoded.into_iter().map(|argument| Ok(redis::from_redis_value(argument)?)).collect()
}

/// Returns the reply of MULTI, one QUEUED for each command, and the reply of EXEC.
fn transaction_replies(replies: Vec<Reply>) -> Vec<Value> {
    let mut values = vec![Value::Okay];
    values.extend(replies.iter().map(|_| Value::SimpleString("QUEUED".to_owned())));
    values.push(Reply::Array(replies).into());
    values
}

fn as_error(reply: Reply) -> RedisError {
    Value::from(reply).extract_error().expect_err("an error reply parses as an error")
}
