//! Starts a private Redis server, prints its pid, folder and address, and keeps the server until
//! this program is killed. Use it for experiments with Redis. A test uses it as the parent process
//! to kill.

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
