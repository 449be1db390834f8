//! A given setting.

use super::kind::Value;
use super::problem::SettingSource;
use super::setting::Setting;

/// A setting's value.
#[derive(Debug, Clone)]
pub struct GivenSetting {
    pub setting: &'static Setting,
    pub value: Option<Value>,
    pub place: SettingSource,
}
