//! A type that happens to be called `Context`.

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
