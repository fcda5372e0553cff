//! `cjson.decode`: converts JSON to Lua values, by the rules of the library that Redis ships.
//!
//! The library also accepts numbers that are not JSON (`0x10`, `inf`). This module refuses such
//! numbers.

use mlua::{Lua, LuaString, Table, Value};

use super::failure;
use super::json_token::{Token, Tokens};

const MAX_DEPTH: usize = 1000;

/// The function `cjson.decode`.
pub(super) fn decode(lua: &Lua, json: Value) -> mlua::Result<Value> {
    let kind = if json.is_nil() { "nil" } else { json.type_name() };
    let text: Option<LuaString> = lua.coerce_string(json)?;
    let Some(text) = text else {
        let misuse = format!("bad argument #1 to 'decode' (string expected, got {kind})");
        return Err(failure::raise(lua, misuse));
    };
    let text = text.as_bytes();
    let decoder = Decoder { lua, tokens: Tokens::new(&text), open: Vec::new() };
    decoder.document().map_err(|problem| match problem {
        Problem::Json(message) => failure::raise(lua, message),
        Problem::Lua(error) => error,
    })
}

/// The decoder. It keeps the open arrays and objects in a list, because a thousand levels of calls
/// are too many for the stack of a thread.
struct Decoder<'a> {
    lua: &'a Lua,
    tokens: Tokens<'a>,
    open: Vec<Open>,
}

enum Open {
    Array { table: Table, next: usize },
    Object { table: Table, name: LuaString },
}

enum Problem {
    Json(String),
    Lua(mlua::Error),
}

impl From<mlua::Error> for Problem {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

impl Decoder<'_> {
    fn document(mut self) -> Result<Value, Problem> {
        let mut token = self.tokens.next();
        loop {
            let Some(value) = self.begin(&mut token)? else { continue };
            match self.end(value)? {
                Ended::Document(value) => return Ok(value),
                Ended::Element(next) => token = next,
            }
        }
    }

    /// Returns the value that begins with the token. Returns `None` if the token opens a nonempty
    /// array or object. In this case, the token becomes the first one inside.
    fn begin(&mut self, token: &mut Token) -> Result<Option<Value>, Problem> {
        Ok(Some(match token {
            Token::String(bytes) => Value::String(self.lua.create_string(bytes)?),
            Token::Number(number) => Value::Number(*number),
            Token::Boolean(boolean) => Value::Boolean(*boolean),
            Token::Null => Value::NULL,
            Token::ArrayBegin => {
                let table = self.nested_table()?;
                *token = self.tokens.next();
                if !matches!(token, Token::ArrayEnd) {
                    self.open.push(Open::Array { table, next: 1 });
                    return Ok(None);
                }
                Value::Table(table)
            }
            Token::ObjectBegin => {
                let table = self.nested_table()?;
                let first = self.tokens.next();
                if !matches!(first, Token::ObjectEnd) {
                    let name = self.name(&first)?;
                    self.open.push(Open::Object { table, name });
                    *token = self.tokens.next();
                    return Ok(None);
                }
                Value::Table(table)
            }
            other => return Err(self.expected("value", other)),
        }))
    }

    /// Adds a value to its parent, and closes the arrays and objects that end after it.
    fn end(&mut self, mut value: Value) -> Result<Ended, Problem> {
        while let Some(open) = self.open.pop() {
            value = match open {
                Open::Array { table, next } => {
                    table.raw_set(next, value)?;
                    match self.tokens.next() {
                        Token::ArrayEnd => Value::Table(table),
                        Token::Comma => {
                            self.open.push(Open::Array { table, next: next + 1 });
                            return Ok(Ended::Element(self.tokens.next()));
                        }
                        other => return Err(self.expected("comma or array end", &other)),
                    }
                }
                Open::Object { table, name } => {
                    table.raw_set(name, value)?;
                    match self.tokens.next() {
                        Token::ObjectEnd => Value::Table(table),
                        Token::Comma => {
                            let next = self.tokens.next();
                            let name = self.name(&next)?;
                            self.open.push(Open::Object { table, name });
                            return Ok(Ended::Element(self.tokens.next()));
                        }
                        other => return Err(self.expected("comma or object end", &other)),
                    }
                }
            };
        }
        match self.tokens.next() {
            Token::End => Ok(Ended::Document(value)),
            other => Err(self.expected("the end", &other)),
        }
    }

    fn nested_table(&self) -> Result<Table, Problem> {
        let depth = self.open.len() + 1;
        if depth > MAX_DEPTH {
            let at = self.tokens.character();
            return Err(Problem::Json(format!(
                "Found too many nested data structures ({depth}) at character {at}"
            )));
        }
        Ok(self.lua.create_table()?)
    }

    /// Returns the name in the token. A colon must follow the name.
    fn name(&mut self, token: &Token) -> Result<LuaString, Problem> {
        let Token::String(name) = token else {
            return Err(self.expected("object key string", token));
        };
        match self.tokens.next() {
            Token::Colon => Ok(self.lua.create_string(name)?),
            other => Err(self.expected("colon", &other)),
        }
    }

    fn expected(&self, wanted: &str, found: &Token) -> Problem {
        let (found, at) = (found.name(), self.tokens.character());
        Problem::Json(format!("Expected {wanted} but found {found} at character {at}"))
    }
}

/// The next step after a value.
enum Ended {
    Document(Value),
    /// Another value follows. It begins with this token.
    Element(Token),
}
