//! The validity of certificates.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use swirl_config::files;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::report::Report;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A certificate that expires within this time should be renewed.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A file of certificates in PEM. `name` is the setting with the file's path.
pub fn file(report: &mut Report, name: &str, path: &Path) {
    let shown = path.display();
    let pem = match files::read(path, files::BYTES_MAX) {
        Ok(pem) => pem,
        Err(error) => {
            let message = format!("{shown} cannot be read: {error}");
            return report.error(name, message, "check its path and permissions");
        }
    };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
    if certificates.is_empty() {
        let message = format!("{shown} contains no PEM certificate");
        return report.error(
            name,
            message,
            "name a file that begins with BEGIN CERTIFICATE",
        );
    }
    for certificate in certificates {
        one(report, name, &shown.to_string(), &certificate);
    }
}

/// One certificate in DER. `whom` names its owner.
pub fn one(report: &mut Report, name: &str, whom: &str, der: &[u8]) {
    let Ok(certificate) = Certificate::from_der(der) else {
        let message = format!("a certificate of {whom} cannot be read");
        return report.warning(name, message, "its dates cannot be read");
    };
    let validity = certificate.tbs_certificate.validity;
    let now = SystemTime::now();
    let (begins, ends) = (
        validity.not_before.to_system_time(),
        validity.not_after.to_system_time(),
    );
    let until = validity.not_after.to_date_time();
    let whom = format!("the certificate of {whom}");
    if begins > now {
        let message = format!("{whom} is not valid yet");
        return report.error(name, message, "check the clock of this machine");
    }
    match ends.duration_since(now) {
        Err(_) => {
            let message = format!("{whom} expired at {until}");
            report.error(name, message, "renew it: connections fail");
        }
        Ok(left) if left < SOON => {
            let days = left.as_secs() / DAY.as_secs();
            let message = format!("{whom} expires in {days} days, at {until}");
            report.warning(name, message, "renew it");
        }
        Ok(_) => report.ok(name, format!("{whom} is valid until {until}")),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;
    use crate::doctor::report::Status;

    fn status(begins: i32, ends: i32) -> Status {
        let mut params = CertificateParams::new(vec!["h".to_owned()]).unwrap();
        params.not_before = date_time_ymd(begins, 1, 1);
        params.not_after = date_time_ymd(ends, 1, 1);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let mut report = Report::default();
        one(&mut report, "c", "h", certificate.der());
        report.checks[0].status
    }

    #[test]
    fn dates() {
        assert_eq!(status(2020, 2999), Status::Ok);
        assert_eq!(status(2020, 2021), Status::Error);
        assert_eq!(status(2998, 2999), Status::Error);
        let mut params = CertificateParams::new(vec!["h".to_owned()]).unwrap();
        let days = |days: u64| SystemTime::now() + DAY * u32::try_from(days).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = days(3).into();
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let mut report = Report::default();
        one(&mut report, "c", "h", certificate.der());
        assert_eq!(report.checks[0].status, Status::Warning);
        assert!(report.checks[0].message.contains("expires in 2 days"));
    }
}
