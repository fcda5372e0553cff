//! Starts a private Redis server, prints its pid, folder and address, and holds it until
//! killed: a Redis to play with, and the parent that a test kills.

use optimus_testkit::RedisServer;

fn main() {
    let server = RedisServer::start();
    println!("pid {}", server.pid());
    println!("folder {}", server.folder().display());
    println!("listening on {}", server.url());
    loop {
        std::thread::park();
    }
}
