//! The types of a source: the key of its page is that of its rows and of its functions, and its
//! tables are texts.

use optimus::{Found, Page, Row};

type Rows = Result<Vec<Found<i64>>, String>;

#[optimus::source(every = "3s")]
async fn other_key(_: Page<u8>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s")]
async fn no_rows(_: Page<i64>) -> Result<u8, String> {
    Ok(1)
}

mod other {
    pub struct Page;
}

#[optimus::source(every = "3s")]
async fn other_page(_: other::Page) -> Rows {
    Ok(Vec::new())
}

async fn of_texts(_: Row<String>) -> Result<bool, String> {
    Ok(true)
}

#[optimus::source(every = "3s", before = of_texts)]
async fn other_row(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

async fn counts(_: Row<i64>) -> Result<u8, String> {
    Ok(1)
}

#[optimus::source(every = "3s", before = counts)]
async fn no_answer(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", over = 16)]
async fn no_tables(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

fn main() {}
