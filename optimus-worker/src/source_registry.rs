//! The sources that a worker knows: [`Sources`].

use std::{collections::BTreeMap, sync::Arc};

use optimus_core::{Data, Error, Source, broker::Broker};

use crate::source_desk::SourceDesk;

/// The definitions of the sources of a worker, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceList {
    /// By name, with whether the worker scans it.
    known: BTreeMap<&'static str, (Source, Scanning)>,
}

/// Whether a worker scans a source, or only runs its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scanning {
    Scanned,
    OnlyRun,
}

/// The sources of a worker that runs.
#[derive(Default)]
pub(crate) struct Sources(Vec<(Arc<SourceDesk>, Scanning)>);

impl SourceList {
    /// Takes the sources that the worker scans, and then those that are linked, whose tasks it may
    /// run.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for two functions with one name, options that can't work, and missing
    /// data.
    pub(crate) fn new(
        scanned: impl IntoIterator<Item = Source>,
        linked: impl IntoIterator<Item = Source>,
        data: &Data,
    ) -> Result<Self, Error> {
        let mut list = Self::default();
        for source in scanned {
            list.add(source, Scanning::Scanned)?;
            check_data(&source, data)?;
        }
        for source in linked {
            list.add(source, Scanning::OnlyRun)?;
        }
        Ok(list)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scanned().next().is_none()
    }

    /// Returns the sources that the worker scans, by name.
    pub(crate) fn scanned(&self) -> impl Iterator<Item = &Source> {
        let all = self.known.values();
        all.filter(|(_, scanning)| *scanning == Scanning::Scanned).map(|(source, _)| source)
    }

    fn add(&mut self, source: Source, scanning: Scanning) -> Result<(), Error> {
        source.check()?;
        let (known, _) = self.known.entry(source.name()).or_insert((source, scanning));
        if known.place() != source.place() {
            return Err(Error::invalid(format!(
                "two sources are named {:?}: {} and {}; give one of them another name with \
                 #[source(name = \"…\")]",
                source.name(),
                known.place(),
                source.place()
            )));
        }
        Ok(())
    }
}

fn check_data(source: &Source, data: &Data) -> Result<(), Error> {
    let Some(missing) = source.required_data().into_iter().find(|key| !data.holds(*key)) else {
        return Ok(());
    };
    Err(Error::invalid(format!(
        "the source {:?} needs data of type {}{}; add the data to the worker with .data(…), or let \
         other workers scan with .without_sources()",
        source.name(),
        missing.name(),
        data.similar(missing).map_or_else(String::new, |other| {
            format!(", and the worker has only {other}, which is another type")
        })
    )))
}

impl Sources {
    pub(crate) fn new(list: &SourceList, broker: &Broker) -> Result<Self, Error> {
        let desk = |(source, scanning): &(Source, Scanning)| {
            Ok((Arc::new(SourceDesk::new(*source, broker.clone())?), *scanning))
        };
        list.known.values().map(desk).collect::<Result<_, Error>>().map(Self)
    }

    /// Returns the sources that the worker scans.
    pub(crate) fn scanned(&self) -> impl Iterator<Item = &Arc<SourceDesk>> {
        let scanned = |(_, scanning): &&(Arc<SourceDesk>, Scanning)| *scanning == Scanning::Scanned;
        self.0.iter().filter(scanned).map(|(desk, _)| desk)
    }

    /// Returns the source with this name, also one that the worker does not scan.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<SourceDesk>> {
        self.0.iter().map(|(desk, _)| desk).find(|desk| desk.source().name() == name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use optimus_core::{DataKey, FoundPage, RunningScan, SourceOptions, SourceParts, Tier};

    use super::*;

    const S: Duration = Duration::from_secs(1);
    const OPTIONS: SourceOptions = SourceOptions {
        tiers: &[Tier { least: 0, most: u32::MAX, every: S }],
        idle: S,
        slices: 1,
        page: 10,
        high_water: 10,
        attempts: None,
        remember: S,
        timeout: S,
        archive_after: None,
    };

    fn of(name: &'static str, place: &'static str, data: fn() -> Vec<DataKey>) -> Source {
        let scan = |_| Ok(Box::pin(std::future::ready(Ok(FoundPage::default()))) as RunningScan);
        let (before, on_failure, archive) = (None, None, None);
        let parts = SourceParts { tables: Vec::new, data, scan, before, on_failure, archive };
        Source::new((name, place), OPTIONS, parts)
    }

    fn refusal(scanned: &[Source], linked: &[Source]) -> String {
        let (scanned, linked) = (scanned.iter().copied(), linked.iter().copied());
        SourceList::new(scanned, linked, &Data::new()).unwrap_err().to_string()
    }

    #[test]
    fn two_sources_of_one_name_and_missing_data_are_refused() {
        let (one, other) = (of("unpaid", "a.rs:1", Vec::new), of("unpaid", "b.rs:2", Vec::new));
        let list = SourceList::new([one, one], [one], &Data::new()).unwrap();
        assert_eq!(list.scanned().count(), 1, "the same function may be named twice");
        assert!(SourceList::new([], [one], &Data::new()).unwrap().is_empty());
        for problem in [refusal(&[one, other], &[]), refusal(&[one], &[other])] {
            assert!(problem.contains("a.rs:1") && problem.contains("b.rs:2"), "{problem}");
        }
        let needy = of("unpaid", "c.rs:3", || vec![DataKey::of::<u8>()]);
        let problem = refusal(&[needy], &[]);
        assert!(problem.contains("needs data of type u8"), "{problem}");
        assert!(SourceList::new([], [needy], &Data::new()).is_ok(), "it only runs its tasks");
        assert!(SourceList::new([needy], [], &Data::new().with(1_u8)).is_ok());
    }
}
