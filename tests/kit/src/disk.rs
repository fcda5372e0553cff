//! Fills the disk of one server.

use std::io;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::RedisServer;

impl RedisServer {
    /// Makes every write of the server to a file fail from now on, as on a full disk. The server
    /// must be started with
    /// [`survives_a_full_disk`](crate::RedisServerBuilder::survives_a_full_disk).
    ///
    /// # Errors
    ///
    /// When the system refuses the change.
    pub fn fill_disk(&self) -> io::Result<()> {
        self.limit_files(Some(0))
    }

    /// Lets the server write again.
    ///
    /// # Errors
    ///
    /// When the system refuses the change, or the server has ended.
    pub fn free_disk(&self) -> io::Result<()> {
        self.limit_files(getrlimit(Resource::Fsize).current)
    }

    /// Sets the largest file that the server may write.
    fn limit_files(&self, current: Option<u64>) -> io::Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let limit = Rlimit { current, maximum: getrlimit(Resource::Fsize).maximum };
        prlimit(Some(pid), Resource::Fsize, limit)?;
        Ok(())
    }
}
