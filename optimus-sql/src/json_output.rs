//! An output as JSON that reads back as the same value: [`to_json`].

use std::fmt;

use serde::{Serialize, Serializer, de::DeserializeOwned, ser};
use serde_json::Error;

/// Writes an output as JSON, and refuses one that a later attempt would read as another value.
pub(crate) fn to_json<T: Serialize + DeserializeOwned>(output: &T) -> Result<String, Error> {
    output.serialize(Check)?;
    let json = serde_json::to_string(output)?;
    serde_json::from_str::<T>(&json)?;
    Ok(json)
}

/// Finds what JSON writes as `null` and reads as `None`. It returns whether a value is `null`.
struct Check;

fn refuse(what: impl fmt::Display) -> Error {
    ser::Error::custom(format_args!("JSON writes {what} as null, so it can't be read again"))
}

macro_rules! plain {
    ($($method:ident: $kind:ty),*) => { $(
        fn $method(self, _: $kind) -> Result<bool, Error> {
            Ok(false)
        }
    )* };
}

impl Serializer for Check {
    type Ok = bool;
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_i128: i128, serialize_u128: u128
    }

    fn serialize_f32(self, number: f32) -> Result<bool, Error> {
        self.serialize_f64(f64::from(number))
    }

    fn serialize_f64(self, number: f64) -> Result<bool, Error> {
        if number.is_finite() { Ok(false) } else { Err(refuse(number)) }
    }

    fn serialize_none(self) -> Result<bool, Error> {
        Ok(true)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<bool, Error> {
        if value.serialize(self)? { Err(refuse("`Some` of nothing")) } else { Ok(false) }
    }

    fn serialize_unit(self) -> Result<bool, Error> {
        Ok(true)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<bool, Error> {
        Ok(true)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Error> {
        value.serialize(self).map(|_| false)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self)
    }
}

macro_rules! list {
    ($($kind:ident: $method:ident),*) => { $(
        impl ser::$kind for Check {
            type Ok = bool;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                value.serialize(Check).map(drop)
            }

            fn end(self) -> Result<bool, Error> {
                Ok(false)
            }
        }
    )* };
}

list! {
    SerializeSeq: serialize_element, SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field, SerializeTupleVariant: serialize_field
}

macro_rules! fields {
    ($($kind:ident),*) => { $(
        impl ser::$kind for Check {
            type Ok = bool;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                value.serialize(Check).map(drop)
            }

            fn end(self) -> Result<bool, Error> {
                Ok(false)
            }
        }
    )* };
}

fields! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for Check {
    type Ok = bool;
    type Error = Error;

    /// JSON itself refuses keys that are no texts or numbers.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Check).map(drop)
    }

    fn end(self) -> Result<bool, Error> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn an_output_that_reads_back_is_written() {
        let map: HashMap<String, Option<f64>> =
            [("a".to_owned(), Some(0.1)), ("b".into(), None)].into();
        assert!(to_json(&map).is_ok());
        assert_eq!(to_json(&()).unwrap(), "null");
        assert_eq!(to_json(&None::<()>).unwrap(), "null");
        assert_eq!(to_json(&vec![Some((1_u8, "x".to_owned()))]).unwrap(), r#"[[1,"x"]]"#);
        assert_eq!(to_json(&Ok::<u8, ()>(7)).unwrap(), r#"{"Ok":7}"#);
    }

    #[test]
    fn an_output_that_becomes_null_is_refused() {
        assert!(to_json(&f64::NAN).is_err());
        assert!(to_json(&vec![Some(f32::INFINITY)]).is_err());
        assert!(to_json(&Some(())).is_err());
        assert!(to_json(&(1, vec![Some(None::<u8>)])).is_err());
    }
}
