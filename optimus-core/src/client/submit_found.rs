//! Submits the tasks of a source's page: [`OwnClient::submit_found`].

use super::{OwnClient, submit_all::Bulk};
use crate::{Error, broker::Receipt, submission::Submission};

/// What became of a task of a source.
#[doc(hidden)]
#[derive(Debug)]
pub enum FoundEnd {
    /// It is stored.
    Submitted,
    /// Its row still has a task, or one that has just succeeded.
    Known,
    /// It can't be stored, also not later.
    Refused(Error),
}

impl OwnClient {
    /// Submits the tasks of one page, through the layers of the worker. Only an error that may pass
    /// by itself is an error of the page; then the page must be submitted again.
    ///
    /// # Errors
    /// The first error that may pass.
    #[doc(hidden)]
    pub async fn submit_found(&self, page: Vec<Submission>) -> Result<Vec<FoundEnd>, Error> {
        let client = self.client();
        let (mut bulk, mut passage) = (Bulk::new(&client.0.submitter), client.passage());
        for mut submission in page {
            let passed = passage.pass(&mut submission).await;
            match passed.and_then(|()| client.check(submission)) {
                Ok(submission) => bulk.add(submission).await,
                Err(problem) => bulk.refuse(problem),
            }
        }
        let answers = bulk.answers().await.into_iter();
        answers.map(|answer| end(answer.map(|(_, answer)| answer.receipt))).collect()
    }
}

fn end(answer: Result<Receipt, Error>) -> Result<FoundEnd, Error> {
    match answer {
        Ok(Receipt::Created | Receipt::WaitsForItself(_)) => Ok(FoundEnd::Submitted),
        Ok(Receipt::Duplicate(_)) => Ok(FoundEnd::Known),
        Err(problem) if is_of_row(&problem) => Ok(FoundEnd::Refused(problem)),
        Err(problem) => Err(problem),
    }
}

/// Returns whether an error is one of the row, and not of the store.
fn is_of_row(problem: &Error) -> bool {
    problem.is_invalid() || problem.is_too_large() || problem.is_refused()
}
