//! What the bearer of a token may do by their roles.

use crate::catalogue::kind::{Kind, Link};
use crate::error::ServiceError;
use crate::identity::roles::{Actions, DataAction, Lacking, Place, TokenBearer};
use crate::service::Service;
use crate::verb::{Facts, Subject};

impl Service {
    /// Whether roles allow a verb. The names of its place are those of the catalogue, so that
    /// a link by resource ids leads nowhere else.
    pub(crate) fn check_roles(
        &self,
        bearer: &TokenBearer,
        facts: &Facts<'_>,
    ) -> Result<(), ServiceError> {
        let actions = facts.actions().ok_or(ServiceError::ControlPlane)?;
        let (Subject::Resource(link) | Subject::Inside(link, _) | Subject::Items(link, _)) =
            &facts.subject;
        let (database, container) = self.names(link);
        let place = Place { database: database.as_deref(), container: container.as_deref() };
        self.check_place(bearer, actions, place)
    }

    /// Whether a bearer may learn what the account is, for which any role will do that reads
    /// metadata somewhere: clients ask that before everything else.
    pub fn check_account_role(&self, bearer: &TokenBearer) -> Result<(), ServiceError> {
        let checked = self.roles().check_account(bearer);
        checked.map_err(|lacking| refusal(bearer, lacking, Place::default()))
    }

    /// The same for managing conflicts, which are no verb: there are none.
    pub fn check_conflict_role(
        &self,
        bearer: &TokenBearer,
        container: &Link,
    ) -> Result<(), ServiceError> {
        let (database, container) = self.names(container);
        let place = Place { database: database.as_deref(), container: container.as_deref() };
        self.check_place(bearer, Actions::of(&[DataAction::ManageConflicts]), place)
    }

    fn check_place(
        &self,
        bearer: &TokenBearer,
        actions: Actions,
        place: Place<'_>,
    ) -> Result<(), ServiceError> {
        let checked = self.roles().check(bearer, actions, place);
        checked.map_err(|lacking| refusal(bearer, lacking, place))
    }

    /// The database and container that a link leads through. Those that do not exist have
    /// the names that they were called.
    fn names(&self, link: &Link) -> (Option<String>, Option<String>) {
        let mut segments = link.segments().iter();
        let Some((Kind::Database, database)) = segments.next() else { return (None, None) };
        let container = segments.next().filter(|(kind, _)| *kind == Kind::Container);
        let container = container.map(|(_, name)| name);
        let directory = self.directory();
        let Some((name, entry)) = directory.database(database) else {
            return (Some(database.clone()), container.cloned());
        };
        let found = container.map(|asked| {
            entry.container(asked).map_or(asked.as_str(), |(name, _)| name).to_owned()
        });
        (Some(name.to_owned()), found)
    }
}

fn refusal(bearer: &TokenBearer, Lacking(action): Lacking, place: Place<'_>) -> ServiceError {
    ServiceError::NotInRole {
        principal: bearer.id.clone(),
        action: action.name(),
        resource: place.to_string(),
    }
}
