//! Data can be any type that is `Clone + Send + Sync`, even a `'static` reference or a type named
//! Context.
#![deny(warnings)]

use std::sync::{Arc, Mutex};

use optimus::{Data, Task, TaskFn};

mod templates {
    #[derive(Clone)]
    pub struct Context(pub &'static str);
}

type Check = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[optimus::task]
async fn render(
    page: String,
    #[data] settings: &'static str,
    #[data] counter: Arc<Mutex<u32>>,
    #[data] check: Check,
    #[data] context: templates::Context,
    ctx: optimus::Context,
) -> Result<String, String> {
    *counter.lock().unwrap() += 1;
    let attempt = ctx.attempt();
    Ok(format!("{page} {settings} {} {} {attempt}", check(&page), context.0))
}

fn names<A, F: TaskFn<A>>(_: F) -> Vec<&'static str> {
    F::Task::required_data().iter().map(optimus::__private::DataKey::name).collect()
}

#[tokio::main]
pub(super) async fn main() {
    assert_eq!(names(render).len(), 4);
    let counter = Arc::new(Mutex::new(0_u32));
    let check: Check = Arc::new(|page| page == "home");
    let data = Data::new()
        .with("dark")
        .with(Arc::clone(&counter))
        .with(check)
        .with(templates::Context("x"));
    let home = render("home".to_owned());
    assert_eq!(home.clone().perform_inline_with(data).await.unwrap(), "home dark true x 1");
    assert_eq!(*counter.lock().unwrap(), 1);
    let error = home.perform_inline().await.unwrap_err();
    assert!(error.to_string().contains("&str"), "{error}");
}
