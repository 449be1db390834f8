//! Saved views.

use swirl_ports::{SavedView, VIEWS_MAX};

use crate::Backend;
use crate::kit::at;

fn view(name: &str, query: &str) -> SavedView {
    SavedView {
        name: name.to_owned(),
        workflow: None,
        status: Some("faulted".to_owned()),
        key: None,
        query: Some(query.to_owned()),
        by: Some("ann".to_owned()),
        saved_at: at(5),
    }
}

pub async fn views_are_saved_and_removed(b: Backend) {
    assert_eq!(b.views.views().await.unwrap(), []);
    let (late, early) = (
        view("late / \"ü\"", "started < -7d"),
        view("early", "started > -1h"),
    );
    for view in [&late, &early] {
        assert!(b.views.save_view(view).await.unwrap());
    }
    assert_eq!(b.views.views().await.unwrap(), [early, late.clone()]);
    let other = view("early", "started > -2h");
    assert!(b.views.save_view(&other).await.unwrap(), "it is replaced");
    assert_eq!(b.views.views().await.unwrap(), [other, late.clone()]);
    assert!(b.views.remove_view("early").await.unwrap());
    assert!(!b.views.remove_view("early").await.unwrap());
    assert_eq!(b.views.views().await.unwrap(), [late]);
}

pub async fn the_number_of_views_is_bounded(b: Backend) {
    for n in 0..VIEWS_MAX {
        assert!(
            b.views
                .save_view(&view(&format!("v{n}"), "id = a"))
                .await
                .unwrap()
        );
    }
    let more = view("more", "id = a");
    assert!(
        !b.views.save_view(&more).await.unwrap(),
        "there are too many"
    );
    assert_eq!(b.views.views().await.unwrap().len(), VIEWS_MAX);
    assert!(
        b.views.save_view(&view("v7", "id = b")).await.unwrap(),
        "a known name"
    );
    assert!(b.views.remove_view("v7").await.unwrap());
    assert!(b.views.save_view(&more).await.unwrap(), "there is room");
}
