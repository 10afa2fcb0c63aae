// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// XDS are the options of the discovery server. It does not use Redis.
type XDS struct {
	Server
	// Address is where proxies connect, host:port. There is no port without TLS.
	Address string
	// ServiceName is the Service that proxies call; the certificate names it,
	// together with Namespace.
	ServiceName string
	// ServerNames are further DNS names or IP addresses for the certificate.
	ServerNames string
	// TLSSecret holds the certificate authority and the serving certificate.
	TLSSecret string
	// LeaseName is the lease of the replica that does the work of one for all.
	LeaseName string
	// CertificateLeaseName is the lease of the replica that writes the certificates.
	CertificateLeaseName string
	// CertificateMode says writer of the certificates: SelfManaged or CertManager.
	CertificateMode string
	// CertificateSettle is how long a new authority has been published before the
	// serving certificate relies on it.
	CertificateSettle time.Duration
	// DeploymentName is the discovery server's own Deployment. It becomes the owner
	// of a Secret that had to be made again, so that uninstalling removes it.
	DeploymentName string
	// PodName is that of the own pod, and PeerTokenFile has the token that it shows to
	// other replicas. Without a token it asks none, and tells none anything.
	PodName, PeerTokenFile string
	// DrainDelay is how long proxies may still connect after the server was told to
	// stop, while endpoints and load balancers forget it.
	DrainDelay time.Duration
	// VerifyProxyAddress admits a proxy's token from an address of its pod alone.
	VerifyProxyAddress bool
	// AdminAddress is where proxies are shown, host:port with a loopback address; empty
	// switches it off. The port asks for no password.
	AdminAddress string
	// Rollouts has the leader carry out the rollouts of ABReleases. It needs rights to read strategies and
	// workloads.
	Rollouts bool
	// ReleaseSeries has the metrics name each release whose run is on.
	ReleaseSeries bool
	// Routers say which TrafficRouters releases can name.
	Routers Routers
	// Gates say which gates rollouts can have.
	Gates Gates
	// Faces say where proxies listen.
	Faces Faces
}

// AddFlags registers the flags with their defaults.
func (x *XDS) AddFlags(fs *flag.FlagSet) {
	x.Server.AddFlags(fs)
	fs.StringVar(&x.Address, "address", ":15010", "address that proxies connect to, with TLS")
	fs.StringVar(&x.AdminAddress, "admin-address", "127.0.0.1:8083", "loopback address at which proxies are shown, for kubectl port-forward; empty switches it off")
	fs.StringVar(&x.ServiceName, "service-name", "plumbline-xds", "Service that proxies call")
	fs.StringVar(&x.ServerNames, "server-names", "", "further DNS names or IP addresses for the certificate, comma separated")
	fs.StringVar(&x.TLSSecret, "tls-secret", "plumbline-xds", "Secret that holds the certificates")
	fs.StringVar(&x.LeaseName, "lease-name", "plumbline-xds", "lease of the replica that does the work of one for all")
	fs.StringVar(&x.CertificateLeaseName, "certificate-lease-name", "plumbline-xds-certificates", "lease of the replica that writes the certificates")
	fs.StringVar(&x.CertificateMode, "certificate-mode", "SelfManaged", "writer of the certificates: SelfManaged or CertManager")
	fs.DurationVar(&x.CertificateSettle, "certificate-settle", 5*time.Minute, "how long a new authority is published before the serving certificate relies on it; a changed ConfigMap takes up to two minutes to reach pods")
	fs.StringVar(&x.DeploymentName, "deployment-name", "plumbline-xds", "the discovery server's own Deployment; owns a Secret that had to be made again")
	fs.BoolVar(&x.VerifyProxyAddress, "verify-proxy-address", true, "take a proxy's token from an address of its pod alone; false where the network translates the addresses of pods")
	fs.BoolVar(&x.Rollouts, "rollouts", false, "carry out the rollouts of ABReleases; it needs the permissions to read RolloutStrategies and workloads")
	fs.BoolVar(&x.ReleaseSeries, "release-series", false, "let the metrics name each release that has a run under way: up to nine series more for each; needs --rollouts")
	x.Gates.AddFlags(fs)
	x.Routers.AddFlags(fs)
	x.Faces.AddFlags(fs)
	fs.StringVar(&x.PodName, "pod-name", "", "name of the own pod; needed with --peer-token-file")
	fs.StringVar(&x.PeerTokenFile, "peer-token-file", "", "file with the token of audience plumbline-xds-peers that is shown to other replicas; empty: this one is alone")
	fs.DurationVar(&x.DrainDelay, "drain-delay", 5*time.Second, "how long proxies may still connect after the server was told to stop")
}

// Validate lists what cannot work, each with the flag as its path.
func (x *XDS) Validate() field.ErrorList {
	errs := x.Server.Validate()
	if _, port, err := net.SplitHostPort(x.Address); err != nil || port == "" {
		errs = append(errs, field.Invalid(flagPath("address"), x.Address, "must be host:port"))
	}
	errs = append(errs, validateLoopback("admin-address", x.AdminAddress)...)
	for name, value := range map[string]string{
		"service-name":           x.ServiceName,
		"tls-secret":             x.TLSSecret,
		"lease-name":             x.LeaseName,
		"certificate-lease-name": x.CertificateLeaseName,
		"deployment-name":        x.DeploymentName,
	} {
		for _, msg := range validation.IsDNS1123Subdomain(value) {
			errs = append(errs, field.Invalid(flagPath(name), value, msg))
		}
	}
	if x.PeerTokenFile != "" {
		for _, msg := range validation.IsDNS1123Subdomain(x.PodName) {
			errs = append(errs, field.Invalid(flagPath("pod-name"), x.PodName, msg))
		}
	}
	if x.LeaseName == x.CertificateLeaseName {
		errs = append(errs, field.Invalid(flagPath("certificate-lease-name"), x.CertificateLeaseName, "must differ from --lease-name"))
	}
	errs = append(errs, validateChoice("certificate-mode", x.CertificateMode, "SelfManaged", "CertManager")...)
	errs = append(errs, validateDuration("certificate-settle", x.CertificateSettle, time.Second, time.Hour)...)
	if x.ReleaseSeries && !x.Rollouts {
		errs = append(errs, field.Invalid(flagPath("release-series"), x.ReleaseSeries, "is of no use without --rollouts"))
	}
	errs = append(errs, x.Faces.validate()...)
	errs = append(errs, x.Routers.validate()...)
	errs = append(errs, x.Gates.validate()...)
	errs = append(errs, validateDuration("drain-delay", x.DrainDelay, 0, MaxProxyDrainDelay)...)
	return errs
}

// MaxProxyDrainDelay leaves streams time to end within the pod's termination grace
// period of 30 s.
const MaxProxyDrainDelay = 20 * time.Second
