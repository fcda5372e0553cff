//! A type of another crate can have the name `Context`.

mod templates {
    pub struct Context;
}

use templates::Context;

#[optimus::task]
async fn render(page: String, ctx: Context) {
    let _ = (page, ctx);
}

fn main() {
    let _ = render("home".to_owned()).perform_async();
}
