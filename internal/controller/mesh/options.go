// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"flag"
	"net"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/internal/options"
)

// Options are the flags of the discovery server.
type Options struct {
	options.Common
	// Address is where proxies connect, host:port. There is no port without TLS.
	Address string
	// CertificateDirectory has tls.crt and tls.key, as a Secret of type
	// kubernetes.io/tls is mounted. They are read again when they change.
	CertificateDirectory string
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	o.Common.AddFlags(fs)
	fs.StringVar(&o.Address, "address", ":15010", "address that proxies connect to, with TLS")
	fs.StringVar(&o.CertificateDirectory, "certificate-directory", "/certificates", "directory with tls.crt and tls.key; they are read again when they change")
}

// Certificate is the file of the server's certificate.
func (o *Options) Certificate() string { return filepath.Join(o.CertificateDirectory, "tls.crt") }

// Key is the file of its private key.
func (o *Options) Key() string { return filepath.Join(o.CertificateDirectory, "tls.key") }

// Validate lists what cannot work, each with the flag as its path.
func (o *Options) Validate() field.ErrorList {
	errs := o.Common.Validate()
	if _, port, err := net.SplitHostPort(o.Address); err != nil || port == "" {
		errs = append(errs, field.Invalid(field.NewPath("--address"), o.Address, "must be host:port"))
	}
	for _, path := range []string{o.Certificate(), o.Key()} {
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("--certificate-directory"), o.CertificateDirectory, err.Error()))
		}
	}
	return errs
}
