// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/admission"
)

// MaxDrainDelay bounds the wait before the webhook stops listening: it has to
// fit into the pod's termination grace period of 30 s, with room for the calls
// that are under way.
const MaxDrainDelay = 25 * time.Second

// Webhook are the options of the admission webhook.
type Webhook struct {
	Common
	// Port of the admission server.
	Port int
	// ServiceName is the Service that the API server calls; the certificate
	// names it, together with Namespace.
	ServiceName string
	// ServerNames are further DNS names or IP addresses for the certificate.
	ServerNames string
	// TLSSecret holds the certificate authority and the serving certificate.
	TLSSecret string
	// WebhookConfiguration is the name of both webhook configurations.
	WebhookConfiguration string
	// InjectConfig is the file that says which proxy pods get; empty: none get one.
	InjectConfig string
	// InjectionConfiguration is the name of the mutating webhook configuration that
	// sends pods to be given their proxy; empty: there is none.
	InjectionConfiguration string
	// LeaseName is the lease of the replica that writes the certificates.
	LeaseName string
	// StampWriter lets the mutating webhook set the writer annotation, for API
	// servers without MutatingAdmissionPolicy.
	StampWriter bool
	// StampedGroups are the groups worth keeping in the stamp, comma separated.
	StampedGroups string
	// ClientCAFile verifies the API server's client certificate; empty: not asked for.
	ClientCAFile string
	// ClientName is the common name that certificate must have; empty: any.
	ClientName string
	// DeploymentName is the webhook's own Deployment. It becomes the owner of a
	// Secret that had to be made again, so that uninstalling removes it.
	DeploymentName string
	// CertificateMode says writer of the certificates: SelfManaged or CertManager.
	CertificateMode string
	// CertificateSettle is how long a new authority has been published before
	// the serving certificate relies on it.
	CertificateSettle time.Duration
	// MaxConcurrent bounds the reviews of one caller, which is an IP address,
	// that are worked on at once.
	MaxConcurrent int
	// ExecutorUser is the user name of the executor; empty when there is none.
	ExecutorUser string
	// MaxHandshakes is how many TLS handshakes are computed at once; 0 means half
	// of the processors.
	MaxHandshakes int
	// ConnectionAge is the shortest life of a connection in use; its longest is
	// twice that.
	ConnectionAge time.Duration
	// DrainDelay is how long the server still answers after it was told to
	// stop, while endpoints and load balancers forget it.
	DrainDelay time.Duration
}

// AddFlags registers the flags with their defaults.
func (w *Webhook) AddFlags(fs *flag.FlagSet) {
	w.Common.AddFlags(fs)
	fs.IntVar(&w.Port, "port", 10250, "port of the admission server")
	fs.StringVar(&w.ServiceName, "service-name", "plumbline-webhook", "Service that the API server calls")
	fs.StringVar(&w.ServerNames, "server-names", "", "further DNS names or IP addresses for the certificate, comma separated")
	fs.StringVar(&w.TLSSecret, "tls-secret", "plumbline-webhook-tls", "Secret that holds the certificates")
	fs.StringVar(&w.WebhookConfiguration, "webhook-configuration", "plumbline", "name of the mutating and the validating webhook configuration")
	fs.StringVar(&w.InjectConfig, "inject-config", "", "file in YAML that configures the proxies of pods; if empty, pods get no proxy")
	fs.StringVar(&w.InjectionConfiguration, "injection-configuration", "", "name of the mutating webhook configuration for pods that get a proxy; needs --inject-config")
	fs.StringVar(&w.LeaseName, "lease-name", "plumbline-webhook", "lease of the replica that writes the certificates")
	fs.BoolVar(&w.StampWriter, "stamp-writer", false, "set the writer annotation here; for API servers without MutatingAdmissionPolicy")
	fs.StringVar(&w.StampedGroups, "stamped-groups", "", "groups that the writer annotation keeps, comma separated; with --stamp-writer")
	fs.StringVar(&w.ExecutorUser, "executor-user", "", "user name of Plumbline's executor, which gets no warnings about its remediations; if empty, there is no executor")
	fs.StringVar(&w.ClientCAFile, "client-ca-file", "", "certificate authority of the API server's client certificate; if empty, clients need no certificate")
	fs.StringVar(&w.ClientName, "client-name", "", "common name that the client certificate must have; empty: any")
	fs.StringVar(&w.DeploymentName, "deployment-name", "plumbline-webhook", "the webhook's own Deployment; owns a Secret that had to be made again")
	fs.StringVar(&w.CertificateMode, "certificate-mode", "SelfManaged", "writer of the certificates: SelfManaged or CertManager")
	fs.DurationVar(&w.CertificateSettle, "certificate-settle", time.Minute, "how long a new authority is published before the serving certificate relies on it")
	fs.IntVar(&w.MaxConcurrent, "max-concurrent", 256, "reviews of one caller worked on at once; more are allowed unassessed")
	fs.IntVar(&w.MaxHandshakes, "max-handshakes", 0, fmt.Sprintf("TLS handshakes computed at once; 0: half of the processors, %d: no limit", admission.MaxHandshakes))
	fs.DurationVar(&w.ConnectionAge, "connection-age", time.Minute, "shortest life of a connection in use; the longest is twice that")
	fs.DurationVar(&w.DrainDelay, "drain-delay", 10*time.Second, "how long to go on answering after being told to stop")
}

// Validate lists what cannot work, each with the flag as its path.
func (w *Webhook) Validate() field.ErrorList {
	errs := w.Common.Validate()
	if w.Port < 1 || w.Port > 65535 {
		errs = append(errs, field.Invalid(flagPath("port"), w.Port, "must be from 1 to 65535"))
	}
	for name, value := range map[string]string{
		"service-name":          w.ServiceName,
		"tls-secret":            w.TLSSecret,
		"webhook-configuration": w.WebhookConfiguration,
		"lease-name":            w.LeaseName,
		"deployment-name":       w.DeploymentName,
	} {
		for _, msg := range validation.IsDNS1123Subdomain(value) {
			errs = append(errs, field.Invalid(flagPath(name), value, msg))
		}
	}
	errs = append(errs, w.validateInjection()...)
	errs = append(errs, validateFile("client-ca-file", w.ClientCAFile)...)
	if w.ClientName != "" && w.ClientCAFile == "" {
		errs = append(errs, field.Invalid(flagPath("client-name"), w.ClientName, "needs --client-ca-file"))
	}
	if w.MaxConcurrent < 1 || w.MaxConcurrent > 4096 {
		errs = append(errs, field.Invalid(flagPath("max-concurrent"), w.MaxConcurrent, "must be from 1 to 4096"))
	}
	if w.MaxHandshakes < 0 || w.MaxHandshakes > admission.MaxHandshakes {
		errs = append(errs, field.Invalid(flagPath("max-handshakes"), w.MaxHandshakes, fmt.Sprintf("must be from 0 to %d", admission.MaxHandshakes)))
	}
	errs = append(errs, validateChoice("certificate-mode", w.CertificateMode, "SelfManaged", "CertManager")...)
	errs = append(errs, validateDuration("certificate-settle", w.CertificateSettle, time.Second, time.Hour)...)
	errs = append(errs, validateDuration("connection-age", w.ConnectionAge, time.Second, time.Hour)...)
	if w.DrainDelay < 0 || w.DrainDelay > MaxDrainDelay {
		errs = append(errs, field.Invalid(flagPath("drain-delay"), w.DrainDelay.String(), "must be from 0s to "+MaxDrainDelay.String()))
	}
	return errs
}

func (w *Webhook) validateInjection() field.ErrorList {
	errs := validateFile("inject-config", w.InjectConfig)
	if w.InjectionConfiguration == "" {
		return errs
	}
	if w.InjectConfig == "" {
		errs = append(errs, field.Invalid(flagPath("injection-configuration"), w.InjectionConfiguration, "needs --inject-config"))
	}
	for _, msg := range validation.IsDNS1123Subdomain(w.InjectionConfiguration) {
		errs = append(errs, field.Invalid(flagPath("injection-configuration"), w.InjectionConfiguration, msg))
	}
	return errs
}

func validateDuration(name string, value, low, high time.Duration) field.ErrorList {
	if value < low || value > high {
		return field.ErrorList{field.Invalid(flagPath(name), value.String(), "must be from "+low.String()+" to "+high.String())}
	}
	return nil
}
