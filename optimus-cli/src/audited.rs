//! Acts that are written down before they are done, as the console does: [`Session::audited`].

use std::fmt::Display;

use futures_util::future::{FutureExt, LocalBoxFuture};
use optimus_core::{AuditAct, AuditNote, Error};

use crate::{failure::Failure, session::Session};

impl Session<'_> {
    /// Writes down an act, does it, and writes down what became of it. An act that can't be written
    /// down is done all the same, with a warning: the operator acts because something is wrong.
    pub(crate) fn audited<'a, T, E: Into<Failure>>(
        &'a self,
        act: &str,
        target: impl Display,
        doing: impl Future<Output = Result<T, E>> + 'a,
    ) -> LocalBoxFuture<'a, Result<T, Failure>> {
        self.audited_as(act, target, doing, |_| "done".to_owned())
    }

    /// The same, with what was done in words.
    pub(crate) fn audited_as<'a, T, E: Into<Failure>>(
        &'a self,
        act: &str,
        target: impl Display,
        doing: impl Future<Output = Result<T, E>> + 'a,
        words: impl FnOnce(&T) -> String + 'a,
    ) -> LocalBoxFuture<'a, Result<T, Failure>> {
        let act = AuditAct {
            who: self.by.clone(),
            act: act.to_owned(),
            target: target.to_string(),
            reason: self.reason.clone(),
        };
        let audited = async move {
            let note = self.note(act).await?;
            let done = doing.await.map_err(Into::into);
            let outcome = match &done {
                Ok(answer) => words(answer),
                Err(Failure { message, .. }) => {
                    format!("failed: {}", message.as_deref().unwrap_or_default())
                }
            };
            if let Some(note) = note
                && let Err(problem) = note.outcome(&outcome).await
            {
                self.warn(&problem);
            }
            done
        };
        audited.boxed_local()
    }

    async fn note(&self, act: AuditAct) -> Result<Option<AuditNote>, Failure> {
        match self.client.audit(act).await {
            Ok(note) => Ok(Some(note)),
            // Then the act would fail, too.
            Err(problem) if problem.is_unavailable() => Err(problem.into()),
            Err(problem) => {
                self.warn(&problem);
                Ok(None)
            }
        }
    }

    fn warn(&self, problem: &Error) {
        self.out.warn(&format!("the audit does not show this act: {problem}"));
    }
}
