//! Encodes arguments and results as JSON that can be decoded again.
//!
//! `serde_json` writes NaN and infinities as `null`, and writes values that are nested more deeply
//! than it can read. A worker could not read such a task. So deep nesting is refused, and a value
//! is searched for such numbers if its JSON has a `null`.

use std::{cell::Cell, fmt, io};

use serde::{
    Serialize, Serializer,
    ser::{
        Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::ser::Formatter;

/// The deepest nesting of arrays and objects that `serde_json` reads.
const DEPTH_MAX: usize = 127;
/// The first allocation, in bytes. Most arguments fit, so they are not moved to a larger one.
const FIRST_BYTES: usize = 256;

/// Encodes a task's arguments, or its result.
///
/// # Errors
/// Values that can't be written as JSON and read again, such as NaN.
pub(crate) fn encode(arguments: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let (mut bytes, any_null) = (Vec::with_capacity(FIRST_BYTES), Cell::new(false));
    let formatter = Watch { any_null: &any_null, depth: 0 };
    arguments.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))?;
    if any_null.get() {
        arguments.serialize(Finite).map_err(serde_json::Error::custom)?;
    }
    Ok(bytes)
}

/// Writes JSON as usual. Notes whether it wrote a `null`, and refuses deep nesting.
struct Watch<'a> {
    any_null: &'a Cell<bool>,
    depth: usize,
}

impl Watch<'_> {
    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "it has more than {DEPTH_MAX} arrays and objects inside one another, which can't be \
             read again; pass a flat list, or a text"
        )))
    }
}

impl Formatter for Watch<'_> {
    fn write_null<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.any_null.set(true);
        writer.write_all(b"null")
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }
}

/// Writes nothing, and refuses numbers that are not finite.
struct Finite;

/// Why a value was refused.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl Error for Refusal {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(why.to_string())
    }
}

macro_rules! accepted {
    ($($method:ident($ty:ty))*) => {
        $(fn $method(self, _: $ty) -> Result<(), Refusal> { Ok(()) })*
    };
}

macro_rules! entered {
    ($($method:ident($($ty:ty),*))*) => {
        $(fn $method(self $(, _: $ty)*) -> Result<Self, Refusal> { Ok(self) })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = Refusal;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_f32(self, number: f32) -> Result<(), Refusal> {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<(), Refusal> {
        if number.is_finite() {
            return Ok(());
        }
        Err(Refusal(format!(
            "{number} can't be written as a number in JSON; use an Option or a String"
        )))
    }

    accepted! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32)
        serialize_i64(i64) serialize_i128(i128) serialize_u8(u8) serialize_u16(u16)
        serialize_u32(u32) serialize_u64(u64) serialize_u128(u128) serialize_char(char)
        serialize_str(&str) serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    entered! {
        serialize_seq(Option<usize>) serialize_tuple(usize) serialize_map(Option<usize>)
        serialize_tuple_struct(&'static str, usize) serialize_struct(&'static str, usize)
        serialize_tuple_variant(&'static str, u32, &'static str, usize)
        serialize_struct_variant(&'static str, u32, &'static str, usize)
    }

    fn serialize_none(self) -> Result<(), Refusal> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Refusal> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Refusal> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Refusal> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Refusal> {
        value.serialize(self)
    }
}

macro_rules! parts {
    ($($compound:ident: $($method:ident($($name:ty)?))+;)*) => {
        $(
            impl $compound for Finite {
                type Ok = ();
                type Error = Refusal;

                $(
                    fn $method<T: ?Sized + Serialize>(
                        &mut self,
                        $(_: $name,)?
                        value: &T,
                    ) -> Result<(), Refusal> {
                        value.serialize(Self)
                    }
                )+

                fn end(self) -> Result<(), Refusal> {
                    Ok(())
                }
            }
        )*
    };
}

parts! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key() serialize_value();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Point,
        Circle(f64),
        Line(f32, f32),
        Box { width: Option<f64>, name: &'static str },
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_anywhere_in_a_value() {
        let refused = |problem: Result<Vec<u8>, serde_json::Error>, shown: &str| {
            let problem = problem.expect_err(shown).to_string();
            assert!(problem.contains(shown), "{problem}");
        };
        refused(encode(&f64::NAN), "NaN");
        refused(encode(&f32::INFINITY), "inf");
        refused(encode(&Some(f64::NEG_INFINITY)), "-inf");
        refused(encode(&vec![1.0, f64::NAN]), "NaN");
        refused(encode(&(1, "a", f64::NAN)), "NaN");
        refused(encode(&BTreeMap::from([("a", f64::NAN)])), "NaN");
        refused(encode(&[Shape::Point, Shape::Circle(f64::NAN)]), "NaN");
        refused(encode(&Shape::Line(1.0, f32::NAN)), "NaN");
        refused(encode(&Shape::Box { width: Some(f64::NAN), name: "a" }), "NaN");
    }

    #[test]
    fn a_value_that_is_too_deep_to_be_read_again_is_refused() {
        let nested = |depth| {
            (0..depth).fold(json!(1), |inner, n| {
                if n % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) }
            })
        };
        let bytes = encode(&json!([nested(126), nested(126)])).unwrap();
        serde_json::from_slice::<Value>(&bytes).expect("serde_json reads the value");
        let problem = encode(&nested(128)).unwrap_err().to_string();
        assert!(problem.contains("127"), "{problem}");
        let bytes = serde_json::to_vec(&nested(128)).unwrap();
        serde_json::from_slice::<Value>(&bytes).expect_err("serde_json can't read it");
    }

    #[test]
    fn other_values_are_written_as_serde_json_writes_them() {
        let same = |value: &dyn erased::Value| assert_eq!(value.ours(), value.theirs());
        same(&Shape::Box { width: None, name: "null" });
        same(&[Shape::Point, Shape::Circle(1.5), Shape::Line(-0.0, f32::MAX)]);
        same(&((), None::<u8>, Some(i128::MIN), u128::MAX, 'x', "a\"b", true));
        same(&json!({ "a": [null, 1, -2.5, { "b": null }] }));
        same(&BTreeMap::from([(1, None), (2, Some(vec![0.1]))]));
        same(&serde_json::value::RawValue::from_string("[null, 1e400]".into()).unwrap());
    }

    mod erased {
        use super::*;

        pub(super) trait Value {
            fn ours(&self) -> Vec<u8>;
            fn theirs(&self) -> Vec<u8>;
        }

        impl<T: Serialize> Value for T {
            fn ours(&self) -> Vec<u8> {
                encode(self).unwrap()
            }

            fn theirs(&self) -> Vec<u8> {
                serde_json::to_vec(self).unwrap()
            }
        }
    }
}
