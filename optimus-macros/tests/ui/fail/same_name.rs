//! A worker finds a task by its name, so two tasks of a package cannot have one name.

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
