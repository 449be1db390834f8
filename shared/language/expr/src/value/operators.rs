//! The arithmetic operators.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jaq_core::ValR;
use jaq_json::{Num, Val};

use super::{V, both, split};
use crate::meter;
use crate::order::{compare, equal, float};

impl std::ops::Add for V {
    type Output = ValR<V>;
    fn add(self, other: V) -> ValR<V> {
        self.plus(other)
    }
}

impl std::ops::Mul for V {
    type Output = ValR<V>;
    fn mul(self, other: V) -> ValR<V> {
        self.times(other)
    }
}

impl std::ops::Sub for V {
    type Output = ValR<V>;
    fn sub(self, other: V) -> ValR<V> {
        meter::tick();
        match (&self.val, &other.val) {
            (Val::Num(left), Val::Num(right)) => Ok(V::num(left.clone() - right.clone())),
            (Val::Arr(_), Val::Arr(right)) => {
                meter::charge(right.len() * 16);
                let right: BTreeSet<_> = right.iter().map(Counted).collect();
                let items: Vec<V> = jaq_std::ValT::into_seq(self).unwrap_or_default();
                Ok(items
                    .into_iter()
                    .filter(|item| !right.contains(&Counted(&item.val)))
                    .collect())
            }
            _ => Err(both(&self, &other, "cannot be subtracted")),
        }
    }
}

impl std::ops::Div for V {
    type Output = ValR<V>;
    fn div(self, other: V) -> ValR<V> {
        meter::tick();
        const ZERO: &str = "cannot be divided because the divisor is zero";
        match (&self.val, &other.val) {
            (Val::Num(_), Val::Num(right)) if float(right) == 0.0 => Err(both(&self, &other, ZERO)),
            (Val::Num(Num::Int(left)), Val::Num(Num::Int(right)))
                if left.checked_rem(*right) == Some(0) =>
            {
                Ok(V::num(Num::Int(left / right)))
            }
            (Val::Num(left), Val::Num(right)) => Ok(V::from(float(left) / float(right))),
            (Val::TStr(_), Val::TStr(_)) => split(&self, other.try_str()?),
            _ => Err(both(&self, &other, "cannot be divided")),
        }
    }
}

impl std::ops::Rem for V {
    type Output = ValR<V>;
    fn rem(self, other: V) -> ValR<V> {
        meter::tick();
        let (Val::Num(left), Val::Num(right)) = (&self.val, &other.val) else {
            return Err(both(&self, &other, "cannot be divided"));
        };
        // jq truncates fractions first.
        let integer = |number: &Num| match number {
            Num::Int(_) | Num::BigInt(_) => number.clone(),
            _ => Num::Int(float(number) as isize),
        };
        let (left, right) = (integer(left), integer(right));
        if float(&right) == 0.0 {
            return Err(both(
                &self,
                &other,
                "cannot be divided because the divisor is zero",
            ));
        }
        Ok(V::num(left % right))
    }
}

impl std::ops::Neg for V {
    type Output = ValR<V>;
    fn neg(self) -> ValR<V> {
        match &self.val {
            Val::Num(Num::Int(0)) => Ok(V::from(-0.0)),
            Val::Num(number) => Ok(V::num(-number.clone())),
            _ => Err(self.fail("cannot be negated")),
        }
    }
}

/// A reference whose comparison counts steps.
struct Counted<'a>(&'a Val);

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        equal(self.0, other.0)
    }
}

impl Eq for Counted<'_> {}

impl PartialOrd for Counted<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.0, other.0)
    }
}
