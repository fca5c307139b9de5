//! Numbers and byte strings one after another, where no key order is needed: in cursors,
//! and in requests to partitions and their answers.
//!
//! A number has seven bits in each byte, the lowest first; a byte string follows its
//! length. Readers take what they read off the front of a slice, and return `None` if the
//! bytes end early or are invalid.

/// Appends a number.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7F).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or_default());
}

/// Takes a number.
pub fn number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = take(input)?;
        let bits = u64::from(byte & 0x7F);
        number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a byte string with its length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Takes a byte string.
pub fn bytes<'i>(input: &mut &'i [u8]) -> Option<&'i [u8]> {
    let length = usize::try_from(number(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

/// Takes a byte string that is text.
pub fn text(input: &mut &[u8]) -> Option<String> {
    Some(std::str::from_utf8(bytes(input)?).ok()?.to_owned())
}

/// Takes one byte.
pub fn take(input: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = input.split_first()?;
    *input = rest;
    Some(*byte)
}

/// Appends a list.
pub fn put_list<T>(out: &mut Vec<u8>, list: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_number(out, list.len() as u64);
    list.iter().for_each(|one| put(out, one));
}

/// Takes a list.
pub fn list<T>(input: &mut &[u8], mut one: impl FnMut(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = number(input)?;
    (0..count).map(|_| one(input)).collect()
}
