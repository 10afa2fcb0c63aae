// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"flag"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/options"
)

// Role serves the REST API. It runs alone: its account writes no object.
const Role = "serve"

// CAConfigMap has the authority of the certificate, for callers.
const CAConfigMap = "plumbline-api-ca"

// maxDrainDelay leaves requests time to end within the termination grace period of the pod.
const maxDrainDelay = 20 * time.Second

// Options are the flags of the role.
type Options struct {
	// Address is where callers connect, host:port, with TLS.
	Address string
	// Hosts are served beside the names of the Service, as the Host header has them, comma separated.
	Hosts string
	// ServiceName is the Service that callers in the cluster call.
	ServiceName string
	// TLSSecret has the certificates, LeaseName is the lease of the replica that writes them, and DeploymentName is the
	// Deployment that owns a Secret that had to be made again.
	TLSSecret, LeaseName, DeploymentName string
	// CertificateMode is SelfManaged, or CertManager where others write the Secret.
	CertificateMode string
	// CertificateSettle is how long a new authority is published before the certificate relies on it.
	CertificateSettle time.Duration
	// DrainDelay is how long callers may still connect after the order to stop.
	DrainDelay time.Duration
	// Browsers says how users of browsers log in.
	Browsers BrowserOptions
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Address, "api-address", ":8443", "role serve: address that callers connect to, with TLS")
	fs.StringVar(&o.Hosts, "api-hosts", "", "role serve: hosts that are served beside the names of the Service, as the Host header has them, comma separated; a port other than 443 belongs to the host")
	fs.StringVar(&o.ServiceName, "api-service-name", "plumbline-api", "role serve: Service that callers in the cluster call")
	fs.StringVar(&o.TLSSecret, "api-tls-secret", "plumbline-api-tls", "role serve: Secret that holds the certificates")
	fs.StringVar(&o.LeaseName, "api-lease-name", "plumbline-api-certificates", "role serve: lease of the replica that writes the certificates")
	fs.StringVar(&o.DeploymentName, "api-deployment-name", "plumbline-api", "role serve: the own Deployment; owns a Secret that had to be made again")
	fs.StringVar(&o.CertificateMode, "api-certificate-mode", string(certs.ModeSelfManaged), "role serve: writer of the certificates: SelfManaged or CertManager")
	fs.DurationVar(&o.CertificateSettle, "api-certificate-settle", 5*time.Minute, "role serve: how long a new authority is published before the certificate relies on it")
	o.Browsers.addFlags(fs)
	fs.DurationVar(&o.DrainDelay, "api-drain-delay", 5*time.Second, "role serve: how long callers may still connect after the order to stop")
}

// Validate lists the faults of the options, each with the flag as its path.
func (o *Options) Validate() field.ErrorList {
	var errs field.ErrorList
	if _, port, err := net.SplitHostPort(o.Address); err != nil || port == "" {
		errs = append(errs, field.Invalid(field.NewPath("--api-address"), o.Address, "must be host:port"))
	}
	for _, host := range options.SplitList(o.Hosts) {
		if !isHost(host) {
			errs = append(errs, field.Invalid(field.NewPath("--api-hosts"), host, "must be a DNS name or an IP address, with the port if it is not 443"))
		}
	}
	errs = append(errs, o.Browsers.validate()...)
	for name, value := range map[string]string{
		"api-service-name": o.ServiceName, "api-tls-secret": o.TLSSecret, "api-lease-name": o.LeaseName, "api-deployment-name": o.DeploymentName,
	} {
		for _, msg := range validation.IsDNS1123Subdomain(value) {
			errs = append(errs, field.Invalid(field.NewPath("--"+name), value, msg))
		}
	}
	if modes := []string{string(certs.ModeSelfManaged), string(certs.ModeCertManager)}; !slices.Contains(modes, o.CertificateMode) {
		errs = append(errs, field.NotSupported(field.NewPath("--api-certificate-mode"), o.CertificateMode, modes))
	}
	if o.CertificateSettle < time.Second || o.CertificateSettle > time.Hour {
		errs = append(errs, field.Invalid(field.NewPath("--api-certificate-settle"), o.CertificateSettle.String(), "must be from 1s to 1h0m0s"))
	}
	if o.DrainDelay < 0 || o.DrainDelay > maxDrainDelay {
		errs = append(errs, field.Invalid(field.NewPath("--api-drain-delay"), o.DrainDelay.String(), "must be from 0s to "+maxDrainDelay.String()))
	}
	return errs
}

// isHost tells whether callers can send a host.
func isHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, "443"
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil && (net.ParseIP(name) != nil || len(validation.IsDNS1123Subdomain(name)) == 0)
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// ServedHosts are all that are served.
func (o *Options) ServedHosts(namespace string) []string {
	return append(certs.ServiceNames(o.ServiceName, namespace, nil), options.SplitList(o.Hosts)...)
}

// Certificates says how the certificates are kept.
func (o *Options) Certificates(namespace, identity string) certs.Config {
	var names []string
	for _, host := range options.SplitList(o.Hosts) {
		names = append(names, nameOf(host))
	}
	return certs.Config{
		Mode: certs.Mode(o.CertificateMode), Namespace: namespace, SecretName: o.TLSSecret, LeaseName: o.LeaseName, ConfigMapName: CAConfigMap,
		DeploymentName: o.DeploymentName, FieldManager: "plumbline-api", Names: certs.ServiceNames(o.ServiceName, namespace, names),
		Settle: o.CertificateSettle, Identity: identity,
	}
}
