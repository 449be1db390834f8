//! Where what a definition refers to is looked for.

use std::collections::BTreeMap;
use std::path::Path;
