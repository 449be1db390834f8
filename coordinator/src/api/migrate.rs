//! `POST /instances/{id}/migrate`: moves an instance to another version of its definition.

use swirl_api::Reason;
use swirl_api::actions::{Migrated, Move};
use swirl_api::instance::InstanceId;
use swirl_service::{Moved, Target, Unfit};

use super::Api;
use super::operate::{find, migrated, not_moved};
use super::problem::Problem;
use super::serve::{Asked, Done};

pub async fn migrate(
    api: Api,
    asked: Asked<InstanceId, Reason, Move>,
) -> Result<Done<Migrated>, Problem> {
    let operator = asked.operator()?;
    let (InstanceId { id }, Move { version, dry_run }) = (asked.path, asked.body);
    let instance = find(&api, &id).await?;
    let header = &instance.header;
    let done = match dry_run {
        true => {
            api.service
                .would_migrate(&header.id, &version, None)
                .await?
        }
        false => {
            let target = Target {
                version: &version,
                state: None,
                mark: None,
            };
            api.service.migrate(&header.id, target, &operator).await?
        }
    };
    let shown = |moved: Option<&Moved>, unfit: Option<&Unfit>| Migrated {
        id: header.id.to_string(),
        workflow: header.definition.workflow.to_string(),
        from: moved
            .map_or(&*header.definition.version, |moved| &*moved.from)
            .to_owned(),
        to: moved.map_or(&*version, |moved| &*moved.to).to_owned(),
        dry_run,
        fits: moved.is_some(),
        code: unfit.map(|unfit| unfit.code().to_owned()),
        reason: unfit.map(ToString::to_string),
    };
    match done {
        Ok(moved) if dry_run => Ok(shown(Some(&moved), None).into()),
        Ok(moved) => {
            let entry = migrated(&header.id, &moved, &operator);
            Ok(Done::from(shown(Some(&moved), None)).audited(entry))
        }
        Err(unfit @ (Unfit::Misfit(_) | Unfit::Status(_) | Unfit::Busy(_))) if dry_run => {
            Ok(shown(None, Some(&unfit)).into())
        }
        Err(unfit) => Err(not_moved(&id, &unfit)),
    }
}
