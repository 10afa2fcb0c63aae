// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Routers say whether releases can name TrafficRouters.
type Routers struct {
	// Enabled has the leader read TrafficRouters. It needs rights to read these.
	Enabled bool
	// Secrets are those that TrafficRouters may name, comma separated.
	Secrets string
}

// AddFlags registers the flags with their defaults.
func (r *Routers) AddFlags(fs *flag.FlagSet) {
	fs.BoolVar(&r.Enabled, "routers", false, "have releases name TrafficRouters; it needs the permissions to read these and to write their status")
	fs.StringVar(&r.Secrets, "router-secrets", "", "Secrets in --namespace that TrafficRouters may name, comma separated")
}

func (r *Routers) validate() field.ErrorList { return validateSecrets("router-secrets", r.Secrets) }
