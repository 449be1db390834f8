//! A given setting.

use super::kind::Value;
use super::problem::Place;
use super::setting::Setting;

/// A setting's value.
#[derive(Debug, Clone)]
pub struct Entry {
    pub setting: &'static Setting,
    pub value: Option<Value>,
    pub place: Place,
}
