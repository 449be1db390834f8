//! The browser and the servers that a journey uses.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Result;
use reqwest::Client;
use tokio::sync::OnceCell;

use crate::browser::Browser;
use crate::server::{Cluster, Dev, shop};

/// Shared by all journeys.
pub struct Site {
    swirl: PathBuf,
    client: Client,
    /// The address of the service that workflows call.
    shop: String,
    cluster: OnceCell<Cluster>,
}

impl Site {
    pub async fn new(swirl: PathBuf, client: Client) -> Result<Site> {
        Ok(Site {
            swirl,
            client,
            shop: shop().await?,
            cluster: OnceCell::new(),
        })
    }
}

pub struct Stage {
    pub browser: Browser,
    pub site: Rc<Site>,
}

impl Stage {
    /// A server for this journey alone, with these definitions. The browser opens its pages.
    pub async fn dev(&self, documents: &[&str]) -> Result<Dev> {
        let dev = Dev::start(self.site.swirl.clone(), self.site.client.clone()).await?;
        for document in documents {
            dev.api.deploy(&self.document(document)).await?;
        }
        self.browser.at(&dev.api.url);
        Ok(dev)
    }

    /// The cluster that journeys share. The browser opens its pages.
    pub async fn cluster(&self) -> Result<&Cluster> {
        let start = || Cluster::start(self.site.swirl.clone(), self.site.client.clone());
        let cluster = self.site.cluster.get_or_try_init(start).await?;
        self.browser.at(&cluster.api.url);
        Ok(cluster)
    }

    /// The program that is tested.
    pub fn swirl(&self) -> &Path {
        &self.site.swirl
    }

    /// A definition that calls the shop.
    pub fn document(&self, text: &str) -> String {
        text.replace("SHOP", &self.site.shop)
    }
}
