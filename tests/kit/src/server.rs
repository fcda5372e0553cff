//! A private Redis server that a test may kill, pause and restart.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::child::ChildGuard;
use crate::launch::{Launch, RedisServerBuilder};
use crate::ping::ping;
use crate::ready::{NotReady, await_ready};

/// The time limit of a start. A server that takes longer is broken, not slow.
const START_WITHIN: Duration = Duration::from_secs(10);

/// The time in which a server that has started reads its data. On a busy machine, each second of
/// writes to its append-only file may take as long to read.
const LOADED_WITHIN: Duration = Duration::from_secs(60);

/// A private Redis server. When it is dropped or this process dies, the server is killed and its
/// folder removed.
#[derive(Debug)]
pub struct RedisServer {
    // Declared first, so that the server is dead before its folder is removed.
    process: ChildGuard,
    launch: Launch,
}

impl RedisServer {
    /// Starts a server on a Unix socket, without persistence.
    ///
    /// # Panics
    ///
    /// If the server does not answer within 10 s. The message contains the server's log.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Returns the options of a server, for example for `RedisServer::builder().tcp().start()`.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    pub(crate) fn launch(launch: Launch) -> Result<Self, String> {
        let process = launch.spawn().map_err(|error| format!("no server: {error}"))?;
        let mut server = Self { process, launch };
        server.await_ready()?;
        Ok(server)
    }

    /// Returns the address for clients: `unix:///…/redis.sock` or `redis://127.0.0.1:…/`, with the
    /// password if there is one. A restart does not change the address.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// Returns the port with [TLS](RedisServerBuilder::tls).
    pub fn tls_port(&self) -> Option<u16> {
        self.launch.tls.as_ref().map(|(port, _)| *port)
    }

    /// Returns the folder with the server's log and its data.
    pub fn folder(&self) -> &Path {
        self.launch.folder.path()
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills the server with -9. Its folder stays for [`restart`](Self::restart).
    pub fn kill(&mut self) {
        self.process.kill().expect("a process can kill its child");
    }

    /// Waits until the server has ended. The caller must have asked it to end.
    pub fn wait(mut self) {
        while self.process.try_wait().expect("a process can wait for its child").is_none() {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills the server if it runs, and starts it again with the same options, address and stored
    /// data.
    ///
    /// # Panics
    ///
    /// If the server does not answer within 10 s. The message contains the server's log.
    pub fn restart(&mut self) {
        self.kill();
        self.process = self.launch.spawn().expect("the server started before");
        if let Err(failure) = self.await_ready() {
            panic!("{failure}");
        }
    }

    /// Returns whether the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Freezes the server (SIGSTOP). Connections stay open, but no command gets a reply.
    pub fn pause(&self) {
        self.process.signal("STOP").expect("the server runs");
        self.await_frozen();
    }

    /// Lets a paused server continue. It executes the commands that it received during the pause.
    pub fn resume(&self) {
        self.process.signal("CONT").expect("the server is paused, not dead");
    }

    /// Sets the server's clock to this many seconds off the machine's clock. Returns by how many
    /// seconds this changes the clock, or none if the server has no [settable
    /// clock](RedisServerBuilder::settable_clock).
    ///
    /// # Errors
    ///
    /// When the file of the clock cannot be written.
    pub fn set_clock(&mut self, off_s: i64) -> io::Result<Option<i64>> {
        self.launch.clock.as_mut().map(|clock| clock.set(off_s)).transpose()
    }

    fn await_ready(&mut self) -> Result<(), String> {
        let launch = &self.launch;
        let check = || {
            let answer = ping(&launch.address, launch.password.as_deref());
            answer.map_err(|error| NotReady { longer: load_time(&error), why: error.to_string() })
        };
        await_ready(&mut self.process, START_WITHIN, check)
            .map_err(|failure| format!("no Redis server: {failure}; its log:\n{}", launch.log()))
    }

    /// Waits until a signal was delivered, which happens a moment after the call. If the system
    /// shows the state of a process, no command is executed after `pause`.
    fn await_frozen(&self) {
        let state = format!("/proc/{}/stat", self.pid());
        while let Ok(stat) = std::fs::read_to_string(&state) {
            if stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns how much longer a server may take that gives this answer.
fn load_time(answer: &io::Error) -> Duration {
    if answer.to_string().contains("LOADING") { LOADED_WITHIN } else { Duration::ZERO }
}
