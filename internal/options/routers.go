// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Routers say whether releases can name TrafficRouters.
type Routers struct {
	// Enabled has the leader read TrafficRouters. It needs rights to read these.
	Enabled bool
	// Secrets are those that TrafficRouters may name, comma separated.
	Secrets string
	// TraefikAddress is where Traefiks poll their configuration, host:port; empty where no TrafficRouter has type Traefik.
	TraefikAddress string
}

// AddFlags registers the flags with their defaults.
func (r *Routers) AddFlags(fs *flag.FlagSet) {
	fs.BoolVar(&r.Enabled, "routers", false, "have releases name TrafficRouters; it needs the permissions to read these and to write their status")
	fs.StringVar(&r.TraefikAddress, "traefik-address", "", "address at which Traefiks poll their configuration, with TLS, such as :15011; needs --routers; empty switches it off")
	fs.StringVar(&r.Secrets, "router-secrets", "", "Secrets in --namespace that TrafficRouters may name, comma separated")
}

func (r *Routers) validate() field.ErrorList {
	errs := validateSecrets("router-secrets", r.Secrets)
	if r.TraefikAddress == "" {
		return errs
	}
	if _, port, err := net.SplitHostPort(r.TraefikAddress); err != nil || port == "" {
		errs = append(errs, field.Invalid(flagPath("traefik-address"), r.TraefikAddress, "must be host:port"))
	}
	if !r.Enabled {
		errs = append(errs, field.Invalid(flagPath("traefik-address"), r.TraefikAddress, "is of no use without --routers"))
	}
	return errs
}
