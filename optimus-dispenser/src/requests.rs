//! The bodies of requests: [`Body`]. An error names the field and says what to send.

use optimus_core::{DateTime, HELD_MAX, ITEM_BYTES_MAX, Item, PRIORITY_MAX, Utc};

use crate::{
    node::{Node, shown},
    problem::Problem,
};

/// The object of a body.
#[derive(Debug)]
pub(crate) struct Body {
    fields: Vec<(String, Node)>,
    /// A right body, for messages.
    example: &'static str,
}

impl Body {
    /// Reads a body that may have these fields. One without a byte is an object without a field.
    pub(crate) fn read(
        bytes: &[u8],
        known: &[&str],
        example: &'static str,
    ) -> Result<Self, Problem> {
        let node = if bytes.trim_ascii().is_empty() {
            Node::Object(Vec::new())
        } else {
            serde_json::from_slice(bytes)
                .map_err(|problem| Problem::invalid(format!("the body can't be read: {problem}")))?
        };
        let Node::Object(fields) = node else {
            let message = format!("the body is {node}; send an object such as {example}");
            return Err(Problem::invalid(message));
        };
        let body = Self { fields, example };
        body.knows(known)?;
        Ok(body)
    }

    /// Refuses fields that are not among these.
    pub(crate) fn knows(&self, known: &[&str]) -> Result<(), Problem> {
        match self.fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(Problem::invalid(format!(
                "unknown field {:?}; send a body such as {}",
                shown(name),
                self.example
            ))),
            None => Ok(()),
        }
    }

    /// How many items an assignee wants to hold.
    pub(crate) fn count(&mut self) -> Result<usize, Problem> {
        match self.needed("count")? {
            Node::Whole(count) if (0..=HELD_MAX as i128).contains(&count) => {
                Ok(usize::try_from(count).unwrap_or(HELD_MAX))
            }
            other => {
                let message = format!("count is {other}; use a whole number from 0 to {HELD_MAX}");
                Err(Problem::invalid(message))
            }
        }
    }

    /// The ids that are named.
    pub(crate) fn ids(&mut self) -> Result<Vec<String>, Problem> {
        self.list(id_of)
    }

    /// The ids that are named, if any are.
    pub(crate) fn ids_if_any(&mut self) -> Result<Option<Vec<String>>, Problem> {
        let is_there = self.fields.iter().any(|(name, _)| name == "items");
        is_there.then(|| self.ids()).transpose()
    }

    /// The items that are named.
    pub(crate) fn items(&mut self) -> Result<Vec<Item>, Problem> {
        self.list(item_of)
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.needed(name)? {
            Node::Text(text) => Ok(text),
            other => Err(Problem::invalid(format!("{name} is {other}; use a text"))),
        }
    }

    /// A text that may be there.
    pub(crate) fn text_if_any(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let is_there = self.fields.iter().any(|(known, _)| known == name);
        is_there.then(|| self.text(name)).transpose()
    }

    fn list<T>(&mut self, read: fn(Node, &str) -> Result<T, Problem>) -> Result<Vec<T>, Problem> {
        match self.needed("items")? {
            Node::List(nodes) => {
                let nodes = nodes.into_iter().enumerate();
                nodes.map(|(at, node)| read(node, &format!("items[{at}]"))).collect()
            }
            other => Err(Problem::invalid(format!(
                "items is {other}; use a list, such as [\"photo-1\"]"
            ))),
        }
    }

    fn needed(&mut self, name: &str) -> Result<Node, Problem> {
        let at = self.fields.iter().position(|(known, _)| known == name).ok_or_else(|| {
            let message = format!("{name} is missing; send a body such as {}", self.example);
            Problem::invalid(message)
        })?;
        Ok(self.fields.swap_remove(at).1)
    }
}

/// Reads an id. The digits of a whole number are one, as of a row in a database.
fn id_of(node: Node, place: &str) -> Result<String, Problem> {
    let id = match node {
        Node::Text(text) => text,
        Node::Whole(number) => number.to_string(),
        other => {
            let message = format!("{place} is {other}; an id is a text or a whole number");
            return Err(Problem::invalid(message));
        }
    };
    match id.len() {
        1..=ITEM_BYTES_MAX => Ok(id),
        bytes => Err(Problem::invalid(format!(
            "{place} has {bytes} bytes; an id has 1 to {ITEM_BYTES_MAX}"
        ))),
    }
}

/// Reads an id, or an object with an id and more.
fn item_of(node: Node, place: &str) -> Result<Item, Problem> {
    let Node::Object(fields) = node else { return Ok(Item::new(id_of(node, place)?)) };
    let (mut id, mut priority, mut since) = (None, 0, None);
    for (name, node) in fields {
        let place = format!("{place}.{}", shown(&name));
        match name.as_str() {
            "id" => id = Some(id_of(node, &place)?),
            "priority" => priority = priority_of(&node, &place)?,
            "since" => since = since_of(&node, &place)?,
            _ => {
                let message =
                    format!("unknown field {place}; an item has an id, a priority and a since");
                return Err(Problem::invalid(message));
            }
        }
    }
    let id = id.ok_or_else(|| Problem::invalid(format!("{place}.id is missing")))?;
    let item = Item::new(id).priority(priority);
    Ok(since.into_iter().fold(item, Item::waiting_since))
}

fn priority_of(node: &Node, place: &str) -> Result<i8, Problem> {
    let priority = match node {
        Node::Whole(priority) => i8::try_from(*priority).ok(),
        _ => None,
    };
    priority.filter(|priority| priority.unsigned_abs() <= PRIORITY_MAX.unsigned_abs()).ok_or_else(
        || {
            let range = format!("-{PRIORITY_MAX} to {PRIORITY_MAX}");
            Problem::invalid(format!("{place} is {node}; use a whole number from {range}"))
        },
    )
}

fn since_of(node: &Node, place: &str) -> Result<Option<DateTime<Utc>>, Problem> {
    let since = match node {
        Node::Null => return Ok(None),
        Node::Text(text) => DateTime::parse_from_rfc3339(text).ok(),
        _ => None,
    };
    let since = since.ok_or_else(|| {
        Problem::invalid(format!("{place} is {node}; use a time such as 2026-01-02T03:04:05Z"))
    })?;
    Ok(Some(since.to_utc()))
}
