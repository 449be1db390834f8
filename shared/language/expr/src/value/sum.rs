//! `+` and `*`, the operations that create large values from small ones.

use std::sync::Arc;

use jaq_core::ValR;
use jaq_json::{Map, Val};

use super::{Error, V, both};
use crate::{meter, order};

impl V {
    /// Appends the elements of an array, or the members of an object.
    fn extended(mut self, more: V) -> V {
        self.charge_copy();
        let inner = self.depth.max(more.depth).saturating_sub(1);
        match (&mut self.val, more.val) {
            (Val::Arr(items), Val::Arr(more)) => {
                meter::charge(more.len() * 16);
                Arc::make_mut(items).extend(more.iter().cloned());
            }
            (Val::Obj(map), Val::Obj(more)) => {
                meter::charge(more.len() * 48);
                Arc::make_mut(map).extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            _ => {}
        }
        V::made(self.val, inner)
    }

    /// `a * b` for objects.
    fn merged(mut self, more: V) -> V {
        fn merge(left: &mut Arc<Map>, right: &Map) {
            meter::charge(right.len() * 48);
            if Arc::strong_count(left) > 1 {
                meter::charge(left.len() * 48);
            }
            let left = Arc::make_mut(left);
            for (key, value) in right {
                match (left.get_mut(key), value) {
                    (Some(Val::Obj(left)), Val::Obj(right)) => merge(left, right),
                    (Some(left), value) => *left = value.clone(),
                    (None, value) => {
                        left.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        let inner = self.depth.max(more.depth).saturating_sub(1);
        if let (Val::Obj(left), Val::Obj(right)) = (&mut self.val, &more.val) {
            merge(left, right);
        }
        V::made(self.val, inner)
    }

    pub fn plus(self, other: V) -> ValR<V> {
        meter::tick();
        match (&self.val, &other.val) {
            (Val::Null, _) => Ok(V { hops: 0, ..other }),
            (_, Val::Null) => Ok(V { hops: 0, ..self }),
            (Val::Num(left), Val::Num(right)) => Ok(V::num(left.clone() + right.clone())),
            (Val::TStr(left), Val::TStr(right)) => {
                meter::text(left.len() + right.len());
                (self.val + other.val)
                    .map(V::new)
                    .map_err(|_| Error::str("cannot be added"))
            }
            (Val::Arr(_), Val::Arr(_)) | (Val::Obj(_), Val::Obj(_)) => Ok(self.extended(other)),
            _ => Err(both(&self, &other, "cannot be added")),
        }
    }

    pub fn times(self, other: V) -> ValR<V> {
        meter::tick();
        match (&self.val, &other.val) {
            (Val::Num(left), Val::Num(right)) => Ok(V::num(left.clone() * right.clone())),
            (Val::TStr(text), Val::Num(number)) | (Val::Num(number), Val::TStr(text)) => {
                let times = order::float(number);
                if times.is_nan() || times <= 0.0 {
                    return Ok(V::null());
                }
                let times = times.max(1.0) as usize;
                meter::text(text.len().saturating_mul(times));
                Ok(V::new(Val::utf8_str(text.repeat(times))))
            }
            (Val::Obj(_), Val::Obj(_)) => Ok(self.merged(other)),
            _ => Err(both(&self, &other, "cannot be multiplied")),
        }
    }
}
