//! An append-only file that ends in the middle of a script, as after a power failure.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use optimus_testkit::{RedisServer, eventually};
use redis::cmd;

use crate::{bench::Bench, situations::SITUATIONS, world::World};

/// The parts of the script's writes that are left, in percent.
const LEFT: [usize; 3] = [10, 60, 99];

/// A server whose file has a world, followed by the writes of one script.
struct Written {
    server: RedisServer,
    file: PathBuf,
    bytes: Vec<u8>,
    before: usize,
}

impl Written {
    async fn by(script: &str, situation: &str) -> Self {
        let mut server = RedisServer::builder().appendonly_always().start();
        let bench = Bench::on(&server).await;
        let world = World::build_for(&bench, situation).await;
        let file = append_only_file(server.folder());
        let before = fs::read(&file).unwrap().len();
        world.act(&bench, script, situation).await.expect(situation);
        server.kill();
        let bytes = fs::read(&file).unwrap();
        Self { server, file, bytes, before }
    }

    /// Starts the server with this part of the script's writes.
    async fn torn(&mut self, left: usize) -> Bench {
        let end = self.before + (self.bytes.len() - self.before) * left / 100;
        self.server.kill();
        fs::write(&self.file, &self.bytes[..end]).unwrap();
        self.server.restart();
        Bench::on(&self.server).await
    }
}

/// Redis 7 has a folder of such files and appends to one of them.
fn append_only_file(folder: &Path) -> PathBuf {
    let Ok(parts) = fs::read_dir(folder.join("appendonlydir")) else {
        return folder.join("appendonly.aof");
    };
    let mut parts = parts.map(|entry| entry.unwrap().path());
    parts.find(|part| part.to_string_lossy().ends_with(".incr.aof")).unwrap()
}

/// Four tests share the scripts, because each of them waits for its server most of the time.
mod a_script_that_was_half_written_has_no_effect {
    use super::{SITUATIONS, has_no_effect};

    const PARTS: usize = 4;

    async fn part(number: usize) {
        for (script, situations) in SITUATIONS.iter().skip(number).step_by(PARTS) {
            for situation in *situations {
                has_no_effect(script, situation).await;
            }
        }
    }

    #[tokio::test]
    async fn first_part() {
        part(0).await;
    }

    #[tokio::test]
    async fn second_part() {
        part(1).await;
    }

    #[tokio::test]
    async fn third_part() {
        part(2).await;
    }

    #[tokio::test]
    async fn fourth_part() {
        part(3).await;
    }
}

async fn has_no_effect(script: &str, situation: &str) {
    let mut written = Written::by(script, situation).await;
    for left in LEFT {
        let bench = written.torn(left).await;
        assert_eq!(bench.fsck().await, [""; 0], "{script}, {situation}, {left} %");
    }
}

/// Redis truncates its file after the last whole command, and leaves the `MULTI` of the script
/// there. Later writes would be joined to the script's first half at the next start.
#[tokio::test]
async fn a_rewritten_file_is_consistent_at_the_next_start() {
    for (script, situation) in [("fail", "dead"), ("claim", "all"), ("submit", "every option")] {
        let mut written = Written::by(script, situation).await;
        let bench = written.torn(80).await;
        let _: String = bench.raw(&cmd("BGREWRITEAOF")).await;
        eventually("the file is rewritten", Duration::from_secs(10), async || {
            let info: String = bench.raw(cmd("INFO").arg("persistence")).await;
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        })
        .await;
        bench.now().pause(&bench.queue).await.unwrap();

        written.server.restart();
        let bench = Bench::on(&written.server).await;
        assert_eq!(bench.fsck().await, [""; 0], "{script}, {situation}");
        assert!(bench.field("meta", "paused").await.is_some(), "{script}");
    }
}
