//! Plain commands, with which a test changes the store without the library.

use std::time::Duration;

use optimus_testkit::eventually;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream},
    net::{TcpStream, UnixStream},
};

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A separate connection to a real server.
pub struct Raw(BufStream<Box<dyn Stream>>);

impl Raw {
    /// Connects to `unix://path` or `redis://host:port/`.
    pub async fn connect(url: &str) -> Self {
        let stream: Box<dyn Stream> = if let Some(path) = url.strip_prefix("unix://") {
            Box::new(UnixStream::connect(path).await.unwrap())
        } else {
            let address = url.strip_prefix("redis://").unwrap().trim_end_matches('/');
            Box::new(TcpStream::connect(address).await.unwrap())
        };
        Self(BufStream::new(stream))
    }

    /// Sends one command, whose words are separated by spaces.
    pub async fn run(&mut self, command: &str) -> Vec<Vec<u8>> {
        let words: Vec<&[u8]> = command.split_whitespace().map(str::as_bytes).collect();
        self.run_words(&words).await
    }

    /// Returns a number from the server's `INFO`.
    pub async fn info(&mut self, name: &str) -> u64 {
        let info = String::from_utf8(self.run("INFO").await.remove(0)).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().parse().unwrap()
    }

    /// Returns the next line that the server sends, such as after `MONITOR`.
    pub async fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line
    }

    /// Sends one command of any bytes. Returns its items, nested or not, without the nils.
    pub async fn run_words(&mut self, words: &[&[u8]]) -> Vec<Vec<u8>> {
        self.0.write_all(format!("*{}\r\n", words.len()).as_bytes()).await.unwrap();
        for word in words {
            self.0.write_all(format!("${}\r\n", word.len()).as_bytes()).await.unwrap();
            self.0.write_all(word).await.unwrap();
            self.0.write_all(b"\r\n").await.unwrap();
        }
        self.0.flush().await.unwrap();
        let (mut items, mut expected) = (Vec::new(), 1_usize);
        while expected > 0 {
            expected -= 1;
            let mut line = String::new();
            self.0.read_line(&mut line).await.unwrap();
            let (kind, rest) = line.trim_end().split_at(1);
            match (kind, rest) {
                ("*", count) => expected += count.parse::<usize>().unwrap_or(0),
                ("$", "-1") => {}
                ("$", length) => {
                    let mut item = vec![0; length.parse::<usize>().unwrap() + 2];
                    self.0.read_exact(&mut item).await.unwrap();
                    item.truncate(item.len() - 2);
                    items.push(item);
                }
                ("-", problem) => panic!("{problem}"),
                (_, text) => items.push(text.into()),
            }
        }
        items
    }

    /// Waits until this many clients wait in a blocking command.
    pub async fn until_waiting(&mut self, count: u64) {
        let (what, within) = (format!("{count} wait"), Duration::from_secs(20));
        eventually(&what, within, async || self.info("blocked_clients").await == count).await;
    }
}
