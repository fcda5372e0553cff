//! Which outputs of `once` are refused, and what a marker without one means.

use optimus_core::BoxError;
use optimus_sql::{Error, Once as _};
use sqlx::{MySql, Sqlite};

use crate::{
    databases::TestDb,
    once::{TABLE, add_effect, attempt, effect, effects, task},
    setup::Setup,
};

crate::on_each_database! {
    an_output_that_json_changes_is_refused_before_the_commit
    a_second_transaction_of_the_same_name_is_an_error
}

async fn an_output_that_json_changes_is_refused_before_the_commit<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let ctx = attempt(&task(), 1);
    let refused: Result<f64, Error> =
        ctx.once(&setup.pool, async |mut tx| effect(&mut tx).await.map(|_| f64::NAN)).await;
    assert!(matches!(refused, Err(Error::Output(_))), "{refused:?}");
    let refused: Result<Option<()>, Error> =
        ctx.once(&setup.pool, async |mut tx| effect(&mut tx).await.map(|_| Some(()))).await;
    assert!(matches!(refused, Err(Error::Output(_))), "{refused:?}");
    assert_eq!(effects(&setup).await, 0);
    let nothing: Result<Option<()>, Error> =
        ctx.once(&setup.pool, async |mut tx| effect(&mut tx).await.map(|_| None)).await;
    assert_eq!((nothing.unwrap(), effects(&setup).await), (None, 1));
}

/// Also in later attempts, which find the markers of the first one.
async fn a_second_transaction_of_the_same_name_is_an_error<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let id = task();
    for fence in 1..3 {
        let ctx = attempt(&id, fence);
        let first: Result<i64, Error> = ctx.once(&setup.pool, add_effect).await;
        assert_eq!(first.unwrap(), 7);
        let second: Result<i64, Error> = ctx.once(&setup.pool, add_effect).await;
        assert!(second.unwrap_err().to_string().contains("`once_part`"));
        let part: Result<i64, Error> = ctx.once_part("more", &setup.pool, add_effect).await;
        assert_eq!(part.unwrap(), 7);
    }
    assert_eq!(effects(&setup).await, 2);
}

/// Two databases are two transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_may_use_the_same_name_in_two_databases() {
    let (one, other) = (Setup::<Sqlite>::start().await, Setup::<Sqlite>::start().await);
    let ctx = attempt(&task(), 1);
    for setup in [&one, &other] {
        setup.sql(TABLE).await;
        let done: Result<i64, Error> = ctx.once(&setup.pool, add_effect).await;
        assert_eq!((done.unwrap(), effects(setup).await), (7, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_a_statement_has_committed_is_an_error() {
    let setup = Setup::<MySql>::start().await;
    setup.sql(TABLE).await;
    let id = task();
    let first: Result<(), BoxError> = attempt(&id, 1)
        .once(&setup.pool, async |mut tx| {
            effect(&mut tx).await?;
            sqlx::query("CREATE TABLE more (n bigint)").execute(&mut **tx).await?;
            Ok(())
        })
        .await;
    let first = first.unwrap_err();
    assert!(matches!(first.downcast_ref(), Some(Error::Ended)), "{first}");
    let next: Result<i64, Error> = attempt(&id, 2).once(&setup.pool, add_effect).await;
    assert!(matches!(next, Err(Error::NoOutput)), "{next:?}");
    assert_eq!(effects(&setup).await, 1, "that of the statement's commit");
}
