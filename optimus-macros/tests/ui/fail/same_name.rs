//! A worker finds a task by its name, so two tasks of a package cannot have one name.
//!
//! A macro sees one function, so each of the two is reported, at its own place. The line about the
//! trait `Owner` is the compiler's own, and is printed for every bound that does not hold.

mod mails {
    #[optimus::task]
    pub async fn send(to: String) {
        let _ = to;
    }
}

mod letters {
    #[optimus::task]
    pub async fn send(to: String) {
        let _ = to;
    }

    #[optimus::task(name = "post")]
    pub async fn send_fast() {}
}

#[optimus::task]
async fn post() {}

#[optimus::task]
async fn other() {}

fn main() {
    let _ = mails::send("Ann".to_owned()).perform_async();
    let _ = letters::send("Ann".to_owned()).perform_async();
}
