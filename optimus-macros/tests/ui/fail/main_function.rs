//! `main` starts the program.

#[optimus::task]
async fn main() {}
