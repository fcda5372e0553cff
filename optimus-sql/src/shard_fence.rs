//! The rows of `optimus_fence` that belong to a sharded function: [`Fences`].
//!
//! `@shard.<function>` has the generation, that is the present number of shards, and where its
//! shards begin. Its transactions share this row. `@shard.<function>/<index>` has the fence of the
//! last holder of a shard, and how far the shard has come; one transaction at a time has it.
//!
//! These rows belong to one namespace, whose name is in the row of the generation: the first one
//! that guards a function of that name. Another namespace finds this out under the lock of that
//! row, and has rows of its own from then on: `@shard.<namespace>:<function>`. Each namespace has
//! the first of them, because it is what a new holder locks first. The first release
//! wrote no namespace, so its rows belong to the namespace that comes next, which both releases
//! guard in the same rows.
//!
//! The row of the generation is always locked first. The first holder of a new generation waits
//! there for all transactions of the old one, so the positions that it finds are the last ones.

use std::collections::BTreeSet;

use optimus_core::{Error as TaskError, Shard};
use serde::{Deserialize, Serialize};

use crate::{
    Dialect, Error, OutboxDb,
    statement::{Kind, Statement, Value},
};

/// The isolation of a transaction in PostgreSQL that sees what was committed while it waited.
const LEVEL: &str = "read committed";

/// The columns of the row of a shard.
const FENCE_KINDS: &[Kind] = &[Kind::Int, Kind::Text];

/// The rows of one shard.
#[derive(Debug)]
pub(crate) struct Fences {
    /// The row of the generation.
    function: String,
    namespace: String,
    index: u16,
    count: u16,
    generation: i64,
    fence: i64,
    restarted: Option<i64>,
}

/// What the row of a generation has besides its number.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Begun {
    /// How many shards it has.
    count: u16,
    /// The positions of which its shards begin at the smallest; none for the beginning.
    base: Vec<String>,
    /// To whom the rows belong; empty if the first release has begun the generation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
}

/// The row of a generation.
struct Generation {
    number: i64,
    begun: Begun,
}

impl Fences {
    pub(crate) fn of(shard: &Shard) -> Self {
        Self {
            function: shard.name_there().unwrap_or_else(|| format!("@shard.{}", shard.name())),
            namespace: shard.namespace().to_owned(),
            index: shard.index(),
            count: shard.count(),
            generation: signed(shard.generation()),
            fence: signed(shard.fence()),
            restarted: shard.restarted().map(signed),
        }
    }

    /// Keeps later generations out until the transaction ends. Returns the positions of which the
    /// shards of this one begin at the smallest.
    pub(crate) async fn pass_generation<DB: OutboxDb>(
        &mut self,
        connection: &mut DB::Connection,
        shard: &Shard,
    ) -> Result<Vec<String>, Error> {
        let may_share = match DB::DIALECT {
            Dialect::Postgres => true,
            // A read that finds an earlier number would keep the lock, and two such transactions
            // would wait for each other.
            Dialect::MySql => shard.was_guarded(),
            // The first statement must write, or the transaction could not write later.
            Dialect::Sqlite => false,
        };
        if may_share {
            // In MySQL a row is locked before it is looked at.
            let names = match DB::DIALECT {
                Dialect::MySql => vec![self.function.clone()],
                Dialect::Postgres | Dialect::Sqlite => {
                    vec![self.function.clone(), self.own_name(shard)]
                }
            };
            for name in names {
                self.function = name;
                if let Some(present) = self.shared::<DB>(connection).await? {
                    shard.note_name_there(&self.function);
                    return self.unless_later(present);
                }
            }
        }
        let before = self.lock_rows::<DB>(connection, shard).await?;
        shard.note_name_there(&self.function);
        self.raise::<DB>(connection, before).await
    }

    /// Returns the name of the row of a shard.
    fn row(&self) -> String {
        format!("{}/{}", self.function, self.index)
    }

    /// Reads the row, and keeps others from changing it, if it belongs to this namespace and is not
    /// of an earlier generation.
    async fn shared<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<Generation>, Error> {
        let select = self.select::<DB>().add(" AND fence >= ?").with(self.generation);
        // Two transactions that lock a row only to see that they must write it would wait for each
        // other.
        let select = select.add(" AND position LIKE ? ESCAPE '!'").with(self.begun_here());
        let found = self.read::<DB>(connection, select.add(DB::DIALECT.for_share())).await?;
        Ok(found.filter(|found| found.begun.namespace == self.namespace))
    }

    /// Locks the row of the generation, after all other transactions with it: that of the namespace
    /// if it has a generation, else that of the function, unless it belongs to another namespace.
    /// The row of the namespace is locked first, and is created for this: so a namespace that has
    /// its own rows waits for no other one, and no other one waits for it.
    async fn lock_rows<DB: OutboxDb>(
        &mut self,
        connection: &mut DB::Connection,
        shard: &Shard,
    ) -> Result<Generation, Error> {
        let name = format!("@shard.{}", shard.name());
        let own_name = self.own_name(shard);
        self.function.clone_from(&own_name);
        let own = self.lock_row::<DB>(connection).await?;
        if own.number > 0 {
            return Ok(own);
        }
        self.function = name;
        let found = self.lock_row::<DB>(connection).await?;
        let namespace = &found.begun.namespace;
        if namespace.is_empty() || *namespace == self.namespace {
            return Ok(found);
        }
        self.function = own_name;
        Ok(own)
    }

    /// Returns the name of the row of the generation if the namespace has its own rows.
    fn own_name(&self, shard: &Shard) -> String {
        format!("@shard.{}:{}", self.namespace, shard.name())
    }

    /// Returns the pattern of a row of a generation that belongs to this namespace.
    fn begun_here(&self) -> String {
        if self.namespace.is_empty() {
            return "%".to_owned();
        }
        // A name has letters, digits, `.`, `_` and `-`; one of them is special in a pattern.
        format!("%\"namespace\":\"{}\"%", self.namespace.replace('_', "!_"))
    }

    async fn lock_row<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Generation, Error> {
        let create = DB::DIALECT.insert_or_lock("optimus_fence", "name,fence");
        let create = Statement::new(create).with(&*self.function).with(0);
        DB::run(connection, create).await?;
        let select = self.select::<DB>().add(DB::DIALECT.for_update());
        let found = self.read::<DB>(connection, select).await?;
        Ok(found.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Begins the generation if it is new. The caller has locked its row.
    async fn raise<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        before: Generation,
    ) -> Result<Vec<String>, Error> {
        if before.number > self.generation {
            return self.unless_later(before);
        }
        if before.number == self.generation {
            if before.begun.namespace != self.namespace {
                let begun = Begun { namespace: self.namespace.clone(), ..before.begun };
                self.write::<DB>(connection, &begun).await?;
                return Ok(begun.base);
            }
            return Ok(before.begun.base);
        }
        let is_restarted = self.restarted.is_some_and(|restarted| restarted > before.number);
        let base = if is_restarted {
            Vec::new()
        } else {
            self.last_positions::<DB>(connection, before).await?
        };
        let begun = Begun { count: self.count, base, namespace: self.namespace.clone() };
        self.write::<DB>(connection, &begun).await?;
        Ok(begun.base)
    }

    /// Writes the row of the generation, which the caller has locked.
    async fn write<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        begun: &Begun,
    ) -> Result<(), Error> {
        let update = "UPDATE optimus_fence SET fence = ?, position = ? WHERE name = ?";
        let update = Statement::new(update).with(self.generation);
        let update = update.with(serde_json::to_string(begun)?).with(&*self.function);
        DB::run(connection, update).await?;
        Ok(())
    }

    fn select<DB: OutboxDb>(&self) -> Statement {
        let isolation = match DB::DIALECT {
            Dialect::Postgres => "current_setting('transaction_isolation')",
            Dialect::MySql | Dialect::Sqlite => "''",
        };
        let select = "SELECT fence, position, {isolation} FROM optimus_fence WHERE name = ?";
        Statement::new(select.replace("{isolation}", isolation)).with(&*self.function)
    }

    async fn read<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        select: Statement,
    ) -> Result<Option<Generation>, Error> {
        const KINDS: &[Kind] = &[Kind::Int, Kind::Text, Kind::Text];
        let rows = DB::read(connection, select, KINDS).await?;
        let Some(row) = rows.into_iter().next() else { return Ok(None) };
        let [number, begun, isolation] = <[Value; 3]>::try_from(row).expect("three columns");
        if DB::DIALECT == Dialect::Postgres && isolation.into_text().as_deref() != Some(LEVEL) {
            let text = "the guard of a shard needs a transaction that is READ COMMITTED, as is the \
                        default: another one does not see what the holder before has committed \
                        while the guard waited for it";
            return Err(TaskError::invalid(text).into());
        }
        let begun = begun.into_text().map(|text| serde_json::from_str(&text)).transpose()?;
        Ok(Some(Generation { number: number.int(), begun: begun.unwrap_or_default() }))
    }

    fn unless_later(&self, present: Generation) -> Result<Vec<String>, Error> {
        if present.number > self.generation {
            return Err(stale(&self.function, self.generation, present.number));
        }
        Ok(present.begun.base)
    }

    /// Returns where the shards of a generation have been at its end; none if one of them was at
    /// its beginning.
    async fn last_positions<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        before: Generation,
    ) -> Result<Vec<String>, Error> {
        let Generation { number, begun: Begun { count, base, .. } } = before;
        let select = "SELECT position FROM optimus_fence \
                      WHERE name = ? AND fence >= ? AND position IS NOT NULL";
        let mut positions = BTreeSet::new();
        let mut has_all = true;
        // One by one: MySQL could read the whole table otherwise, and lock rows of others.
        for index in 0..count {
            let select = Statement::new(select).with(format!("{}/{index}", self.function));
            let select = select.with(number).add(DB::DIALECT.for_share());
            let rows = DB::read(connection, select, &[Kind::Text]).await?;
            let position = rows.into_iter().flatten().next().and_then(Value::into_text);
            has_all &= position.is_some();
            positions.extend(position);
        }
        if !has_all && base.is_empty() {
            return Ok(Vec::new());
        }
        if !has_all {
            // The others are where they began.
            positions.extend(base);
        }
        Ok(positions.into_iter().collect())
    }

    /// Keeps other holders of the shard out until the transaction ends. Returns the position of the
    /// shard, if it has one in this generation.
    pub(crate) async fn pass_fence<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<String>, Error> {
        let (row, Self { fence, generation, .. }) = (self.row(), self);
        let insert = Statement::new("INSERT INTO optimus_fence (name, fence) VALUES (?, ?) ");
        let insert = insert.with(&*row).with(*fence);
        // A position of an earlier generation is of another set of rows.
        let rows = if DB::DIALECT == Dialect::MySql {
            let insert = insert.add(
                "ON DUPLICATE KEY UPDATE position = IF(fence < ?, NULL, position), \
                 fence = GREATEST(fence, ?)",
            );
            DB::run(connection, insert.with(*generation).with(*fence)).await?;
            let select = "SELECT fence, position FROM optimus_fence WHERE name = ? FOR UPDATE";
            DB::read(connection, Statement::new(select).with(&*row), FENCE_KINDS).await?
        } else {
            let greatest = if DB::DIALECT == Dialect::Sqlite { "max" } else { "greatest" };
            let insert = insert.add(&format!(
                "ON CONFLICT (name) DO UPDATE SET position = CASE WHEN optimus_fence.fence < ? \
                 THEN NULL ELSE optimus_fence.position END, \
                 fence = {greatest}(optimus_fence.fence, excluded.fence) RETURNING fence, position"
            ));
            DB::read(connection, insert.with(*generation), FENCE_KINDS).await?
        };
        let found = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
        let [seen, position] = <[Value; 2]>::try_from(found).expect("two columns");
        if seen.int() > *fence {
            return Err(stale(&row, *fence, seen.int()));
        }
        Ok(position.into_text())
    }

    /// Stores the position of the shard; returns whether this holder has passed its guard. It
    /// checks what the guard checks, because the guard may belong to an earlier transaction, or to
    /// a savepoint that was rolled back.
    pub(crate) async fn store<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        position: String,
    ) -> Result<bool, Error> {
        let update = "UPDATE optimus_fence SET position = ? WHERE name = ? AND fence = ?";
        let mut update = Statement::new(update).with(position).with(self.row()).with(self.fence);
        if DB::DIALECT == Dialect::Sqlite {
            // The first statement must write, as in the guard.
            update = update.add(
                " AND ? = (SELECT fence FROM optimus_fence WHERE name = ? \
                 AND position LIKE ? ESCAPE '!')",
            );
            update = update.with(self.generation).with(&*self.function).with(self.begun_here());
        } else if !self.is_begun::<DB>(connection).await? {
            return Ok(false);
        }
        if DB::run(connection, update).await? > 0 {
            return Ok(true);
        }
        if DB::DIALECT == Dialect::Sqlite && !self.is_begun::<DB>(connection).await? {
            return Ok(false);
        }
        let select = "SELECT fence FROM optimus_fence WHERE name = ?";
        let select = Statement::new(select).with(self.row()).add(DB::DIALECT.for_share());
        let rows = DB::read(connection, select, &[Kind::Int]).await?;
        match rows.first().map(|row| row[0].int()) {
            Some(seen) if seen > self.fence => Err(stale(&self.row(), self.fence, seen)),
            _ => Ok(false),
        }
    }

    /// Returns whether the generation has begun, and keeps later ones out, as the guard does.
    async fn is_begun<DB: OutboxDb>(&self, connection: &mut DB::Connection) -> Result<bool, Error> {
        let Some(present) = self.shared::<DB>(connection).await? else { return Ok(false) };
        self.unless_later(present).map(|_| true)
    }
}

fn signed(fence: u64) -> i64 {
    i64::try_from(fence).unwrap_or(i64::MAX)
}

fn stale(name: &str, fence: i64, seen: i64) -> Error {
    let [fence, seen] = [fence, seen].map(|fence| u64::try_from(fence).unwrap_or(0));
    Error::Stale { name: name.to_owned(), fence, seen }
}
